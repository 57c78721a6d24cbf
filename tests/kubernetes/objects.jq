# Objects for tests, one on each line: jq -cn -f objects.jq --arg what KIND --arg name NAME --argjson count N
#   nodes    N nodes of eight H100 each, "NAME-0" to "NAME-<N-1>", with the ResourceSlices that NVIDIA's DRA driver
#            publishes: the driver gpu.nvidia.com, a pool for each node, devices "gpu-<minor>", attribute uuid
#   classes  the DeviceClass gpu.nvidia.com
#   access   the bindings of the user gpu-platform to the roles of deploy/kubernetes/rbac.yaml, for pinned devices and jobs in
#            the namespace NAME; access-allocate, access-queue: what allocating and the workloads of NAME take in addition
#   user     the binding of the user ann to the role "edit" in the namespace NAME
#   namespace, volume   the platform's own, for its chart; plain: a namespace without labels

def gpus_of_a_node: 8;

# Two hexadecimal digits of a small number.
def hex2: "0123456789abcdef" as $digits | $digits[. / 16 | floor:][:1] + $digits[. % 16:][:1];
def node_number: (. / 256 | floor | hex2) + (. % 256 | hex2);

# Has the form of NVML's, tells node and GPU apart, and is the same in each run.
def uuid($node; $gpu): "GPU-00000000-0000-4000-8000-0000\($node | node_number)00\($gpu | hex2)";

def node($name): {
  apiVersion: "v1", kind: "Node",
  metadata: {
    name: $name,
    labels: {
      "gpu-platform.test/kwok": "true",
      "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": $name, "kubernetes.io/os": "linux",
      "nvidia.com/gpu.count": "\(gpus_of_a_node)", "nvidia.com/gpu.memory": "81559",
      "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"
    }
  },
  status: ({cpu: "192", memory: "2Ti", pods: "250", "ephemeral-storage": "1Ti"} | {capacity: ., allocatable: .})
};

def device($node; $gpu): {
  name: "gpu-\($gpu)",
  attributes: {
    type: {string: "gpu"}, uuid: {string: uuid($node; $gpu)}, brand: {string: "Nvidia"},
    productName: {string: "NVIDIA H100 80GB HBM3"}, architecture: {string: "Hopper"},
    cudaComputeCapability: {version: "9.0.0"}, driverVersion: {version: "570.133.20"},
    cudaDriverVersion: {version: "12.8.0"},
    "resource.kubernetes.io/pciBusID": {string: "0000:\($gpu * 16 + 27 | hex2):00.0"}
  },
  capacity: {memory: {value: "81559Mi"}}
};

def slice($name; $node): {
  apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice",
  metadata: {name: "\($name)-gpu.nvidia.com"},
  spec: {
    driver: "gpu.nvidia.com", nodeName: $name,
    pool: {name: $name, generation: 1, resourceSliceCount: 1},
    devices: [range(gpus_of_a_node) | device($node; .)]
  }
};

def class: {
  apiVersion: "resource.k8s.io/v1", kind: "DeviceClass",
  metadata: {name: "gpu.nvidia.com"},
  spec: {
    selectors: [{cel: {expression:
      "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}],
    extendedResourceName: "nvidia.com/gpu"
  }
};

# For the whole cluster, or in a namespace.
def binding($role; $namespace): {
  apiVersion: "rbac.authorization.k8s.io/v1", kind: (if $namespace == null then "ClusterRoleBinding" else "RoleBinding" end),
  metadata: ({name: "test-\($role)"} + if $namespace == null then {} else {namespace: $namespace} end),
  roleRef: {
    apiGroup: "rbac.authorization.k8s.io", name: $role,
    kind: (if $role == "gpu-platform-leader" then "Role" else "ClusterRole" end)
  },
  subjects: [{apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "gpu-platform"}]
};

# Takes no pod with more rights than the chart's.
def namespace: {
  apiVersion: "v1", kind: "Namespace",
  metadata: {name: $name, labels: {"pod-security.kubernetes.io/enforce": "restricted"}}
};

def volume: {
  apiVersion: "v1", kind: "PersistentVolume", metadata: {name: $name},
  spec: {capacity: {storage: "100Gi"}, accessModes: ["ReadWriteOnce"], hostPath: {path: "/never-mounted"}}
};

if $what == "nodes" then range($count) as $i | "\($name)-\($i)" | node(.), slice(.; $i)
elif $what == "classes" then class
elif $what == "namespace" then namespace
elif $what == "plain" then namespace | del(.metadata.labels)
elif $what == "volume" then volume
elif $what == "access" then
  binding("gpu-platform"; null), binding("gpu-platform-jobs"; $name), binding("gpu-platform-leader"; "gpu-platform")
elif $what == "access-allocate" then binding("gpu-platform-allocate"; null), binding("gpu-platform-jobs-allocate"; $name)
elif $what == "access-queue" then binding("gpu-platform-workloads"; null), binding("gpu-platform-queue"; $name)
elif $what == "user" then binding("edit"; $name) | .subjects[0].name = "ann"
else error("no objects \($what)")
end
