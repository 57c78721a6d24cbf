// gpu_driver stands in for NVIDIA's DRA driver on the node of scripts/check_kubelet: it publishes made-up GPUs as that
// driver does, and hands the kubelet CDI devices for the claims of pods. So that a test sees which devices arrived, a
// device sets a variable in the container, GPU_PLATFORM_TEST_GPU_<minor>=<UUID>, and makes /dev/nvidia<minor>, which is
// the machine's /dev/null.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	api "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const (
	driverName = "gpu.nvidia.com"
	cdiKind    = "gpu.nvidia.com/claim"
)

// uuidOf has the form of NVML's and is the same in each run.
func uuidOf(minor int) string { return fmt.Sprintf("GPU-00000000-0000-4000-8000-ffff0000%04x", minor) }

func devices(count int) []api.Device {
	text := func(value string) api.DeviceAttribute { return api.DeviceAttribute{StringValue: &value} }
	version := func(value string) api.DeviceAttribute { return api.DeviceAttribute{VersionValue: &value} }
	var all []api.Device
	for minor := range count {
		all = append(all, api.Device{
			Name: fmt.Sprintf("gpu-%d", minor),
			Attributes: map[api.QualifiedName]api.DeviceAttribute{
				"type": text("gpu"), "uuid": text(uuidOf(minor)), "productName": text("NVIDIA H100 80GB HBM3"),
				"driverVersion": version("570.133.20"),
			},
			Capacity: map[api.QualifiedName]api.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}},
		})
	}
	return all
}

// driver answers the kubelet. cdiFolder is where the container runtime looks for CDI specifications.
type driver struct{ cdiFolder string }

func (d driver) specFile(claim types.UID) string {
	return filepath.Join(d.cdiFolder, "claim-"+string(claim)+".json")
}

type cdiNode struct {
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
}

type cdiEdits struct {
	Env         []string  `json:"env"`
	DeviceNodes []cdiNode `json:"deviceNodes"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

func (d driver) prepare(claim *api.ResourceClaim) kubeletplugin.PrepareResult {
	spec := cdiSpec{Version: "0.6.0", Kind: cdiKind}
	var result kubeletplugin.PrepareResult
	for _, allocated := range claim.Status.Allocation.Devices.Results {
		var minor int
		if allocated.Driver != driverName {
			continue
		}
		if _, err := fmt.Sscanf(allocated.Device, "gpu-%d", &minor); err != nil {
			return kubeletplugin.PrepareResult{Err: fmt.Errorf("no device %s: %w", allocated.Device, err)}
		}
		name := string(claim.UID) + "-" + allocated.Device
		edits := cdiEdits{
			Env:         []string{fmt.Sprintf("GPU_PLATFORM_TEST_GPU_%d=%s", minor, uuidOf(minor))},
			DeviceNodes: []cdiNode{{Path: fmt.Sprintf("/dev/nvidia%d", minor), HostPath: "/dev/null"}},
		}
		spec.Devices = append(spec.Devices, cdiDevice{Name: name, Edits: edits})
		result.Devices = append(result.Devices, kubeletplugin.Device{
			Requests: []string{allocated.Request}, PoolName: allocated.Pool, DeviceName: allocated.Device,
			CDIDeviceIDs: []string{cdiKind + "=" + name},
		})
	}
	text, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(d.specFile(claim.UID), text, 0o644)
	}
	if err != nil {
		return kubeletplugin.PrepareResult{Err: err}
	}
	return result
}

func (d driver) PrepareResourceClaims(_ context.Context, claims []*api.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.specFile(claim.UID))
		if os.IsNotExist(err) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (d driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

// run serves until the context ends.
func run(ctx context.Context, kubeconfig, node, kubeletRoot, cdiFolder string, count int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	folder := filepath.Join(kubeletRoot, "plugins", driverName)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	plugin, err := kubeletplugin.Start(ctx, driver{cdiFolder}, kubeletplugin.KubeClient(client), kubeletplugin.NodeName(node),
		kubeletplugin.DriverName(driverName), kubeletplugin.PluginDataDirectoryPath(folder),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(kubeletRoot, "plugins_registry")))
	if err != nil {
		return err
	}
	defer plugin.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices(count)}}}
	pools := map[string]resourceslice.Pool{node: pool}
	if err := plugin.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of a user who may write ResourceSlices")
	node := flag.String("node", "", "the node's name")
	kubeletRoot := flag.String("kubelet-root", "", "the kubelet's --root-dir")
	cdiFolder := flag.String("cdi-folder", "", "for CDI specifications")
	count := flag.Int("gpus", 4, "how many GPUs there are")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown arguments: %s", strings.Join(flag.Args(), " "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *kubeletRoot, *cdiFolder, *count); err != nil {
		log.Fatal(err)
	}
}
