/* A library with NVML's names for tests: two GPUs, and the faults that the environment asks for.
 *
 *   FAKE_NVML_INIT=N         nvmlInit answers N
 *   FAKE_NVML_COUNT=N        number of GPUs
 *   FAKE_NVML_LOST=I         every call on GPU I answers GPU_IS_LOST (15)
 *   FAKE_NVML_HANG_WHILE=F   readings never return while the file F exists
 *   FAKE_NVML_SLOW_HANG_WHILE=F, FAKE_NVML_EVENTS_HANG_WHILE=F   the same for slow readings, the wait for events
 *   FAKE_NVML_EVENT=F        a file F with "GPU TYPE VALUE" is an event; it is taken away
 *   FAKE_NVML_EVENT_TYPES=N  the events that GPUs say they support
 *   FAKE_NVML_GPM=X          what GPM counts of GPU 0, in percent, also "nan"; GPU 1 has no GPM
 *   FAKE_NVML_SAMPLE_TIME=N  when the newest sample of a process was taken
 *   FAKE_NVML_USED=N         bytes of memory in use, for the plain function
 *   FAKE_NVML_SLOWDOWN=N     the temperature from which GPUs lower their clocks; -1: not supported
 *
 * It has only functions of old drivers (no version suffix, no UUID before FAKE_NVML_NEW): what the loader
 * must fall back to. FAKE_NVML_NEW (a compile definition) adds newer ones that answer otherwise, to show
 * that they are preferred.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  unsigned index;
} device_t;

static device_t devices[64];

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atoi(text);
}

static unsigned long long wide_number(const char* name, unsigned long long otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static int state_of(const device_t* device) {
  return number("FAKE_NVML_LOST", -1) == (int)device->index ? 15 : 0;
}

static void hang_while(const char* name) {
  const char* path = getenv(name);
  if (path == NULL || access(path, F_OK) != 0) return;
  while (1) pause();
}

int nvmlInit(void) { return number("FAKE_NVML_INIT", 0); }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "Some Error"; }

int nvmlDeviceGetCount(unsigned* count) {
  *count = (unsigned)number("FAKE_NVML_COUNT", 2);
  return 0;
}

int nvmlDeviceGetHandleByIndex(unsigned index, device_t** device) {
  if (index >= 64) return 2;
  devices[index].index = index;
  *device = &devices[index];
  return state_of(*device);
}

int nvmlDeviceGetName(device_t* device, char* name, unsigned length) {
  snprintf(name, length, "Tesla V100-SXM2-16GB");
  return state_of(device);
}

int nvmlDeviceGetUUID(device_t* device, char* uuid, unsigned length) {
  snprintf(uuid, length, "GPU-fake-%u", device->index);
  return state_of(device);
}

struct pci_v1 {
  char bus_id[16];
  unsigned domain, bus, device, pci_device_id;
};

int nvmlDeviceGetPciInfo(device_t* device, struct pci_v1* pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id, sizeof pci->bus_id, "0000:%02X:00.0", 0x10 + device->index);
  pci->bus = 0x10 + device->index;
  return state_of(device);
}

struct memory_v1 {
  unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(device_t* device, struct memory_v1* memory) {
  hang_while("FAKE_NVML_HANG_WHILE");
  memory->total = 16ull << 30;
  memory->used = wide_number("FAKE_NVML_USED", 1ull << 30);
  memory->free = memory->total - memory->used;
  return state_of(device);
}

int nvmlDeviceGetTemperature(device_t* device, unsigned sensor, unsigned* degrees) {
  (void)sensor;
  *degrees = 41;
  return state_of(device);
}

struct process_v1 {
  unsigned pid;
  unsigned long long memory;
};

/* More processes than a caller offers room for at first. */
int nvmlDeviceGetComputeRunningProcesses(device_t* device, unsigned* count, struct process_v1* out) {
  const unsigned there = 40;
  const unsigned capacity = *count;
  if (state_of(device) != 0) return state_of(device);
  *count = there;
  if (capacity < there) return 7;
  for (unsigned i = 0; i < there; ++i) {
    out[i].pid = 1000 + i;
    out[i].memory = i == 0 ? ~0ull : 1ull << 20;
  }
  return 0;
}

#ifdef FAKE_NVML_NEW
struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

/* A driver that counts the reserved part into `used`. */
int nvmlDeviceGetMemoryInfo_v2(device_t* device, struct memory_v2* memory) {
  hang_while("FAKE_NVML_HANG_WHILE");
  if (memory->version != (sizeof *memory | 2u << 24)) return 25;
  memory->total = 16ull << 30;
  memory->reserved = 1ull << 30;
  memory->free = 13ull << 30;
  memory->used = 3ull << 30;
  return state_of(device);
}

/* Present, but the driver below is too old for it. */
int nvmlDeviceGetTemperatureV(device_t* device, void* temperature) {
  (void)device;
  (void)temperature;
  return 13;
}

int nvmlDeviceGetTemperatureThreshold(device_t* device, unsigned threshold, unsigned* degrees) {
  *degrees = threshold == 1 ? (unsigned)number("FAKE_NVML_SLOWDOWN", 93) : 77;
  return (int)*degrees < 0 ? 3 : state_of(device);
}

struct process_v2 {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v2(device_t* device, unsigned* count, struct process_v2* out) {
  (void)device;
  *count = 1;
  out[0].pid = 77;
  out[0].memory = 5ull << 20;
  return 0;
}

/* The same process as a client of MPS, and one that draws. */
int nvmlDeviceGetMPSComputeRunningProcesses_v3(device_t* device, unsigned* count, struct process_v2* out) {
  (void)device;
  *count = 1;
  out[0].pid = 77;
  out[0].memory = 5ull << 20;
  return 0;
}

/* Twice in one list, as with two MIG instances. */
int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t* device, unsigned* count, struct process_v2* out) {
  (void)device;
  *count = 2;
  for (int i = 0; i < 2; ++i) {
    out[i].pid = 5;
    out[i].memory = 1ull << 20;
  }
  return 0;
}

int nvmlDeviceGetTotalEccErrors(device_t* device, unsigned type, unsigned counter, unsigned long long* count) {
  *count = device->index == 0 ? 100 * counter + 10 * type + 3 : ~0ull;
  return state_of(device);
}

int nvmlDeviceGetPowerUsage(device_t* device, unsigned* power) {
  *power = ~0u;
  return state_of(device);
}

int nvmlDeviceGetEncoderUtilization(device_t* device, unsigned* percent, unsigned* period_us) {
  *percent = device->index == 0 ? 12 : 101;
  *period_us = 167000;
  return state_of(device);
}

int nvmlDeviceGetDecoderUtilization(device_t* device, unsigned* percent, unsigned* period_us) {
  *percent = 34;
  *period_us = 167000;
  return state_of(device);
}

struct process_sample {
  unsigned pid;
  unsigned long long time;
  unsigned sm, memory, encoder, decoder;
};

/* The newest is not the last one, and some places are as they were. It does not look at `last_seen`. */
int nvmlDeviceGetProcessUtilization(device_t* device, struct process_sample* out, unsigned* count,
                                    unsigned long long last_seen) {
  const unsigned long long newest = wide_number("FAKE_NVML_SAMPLE_TIME", 2000);
  const struct process_sample samples[] = {
      {77, newest, 40, 0, 0, 0}, {77, 1000, 90, 0, 0, 0}, {0, newest, 5, 0, 0, 0}, {6, newest, 4000000000u, 0, 0, 0},
      {5, 1500, 7, 0, 0, 0}};
  const unsigned there = sizeof samples / sizeof samples[0];
  const unsigned capacity = *count;
  (void)last_seen;
  *count = there;
  if (capacity < there) return 7;
  memcpy(out, samples, sizeof samples);
  return state_of(device);
}

struct gpm_support {
  unsigned version, is_supported;
};

int nvmlGpmQueryDeviceSupport(device_t* device, struct gpm_support* support) {
  support->is_supported = device->index == 0;
  return state_of(device);
}

int nvmlGpmSampleAlloc(device_t*** sample) {
  *sample = calloc(1, sizeof **sample);
  return 0;
}

int nvmlGpmSampleFree(device_t** sample) {
  free(sample);
  return 0;
}

int nvmlGpmSampleGet(device_t* device, device_t** sample) {
  *sample = device;
  return state_of(device);
}

struct gpm_metric {
  unsigned id;
  int result;
  double value;
  const char *short_name, *long_name, *unit;
};

struct gpm_metrics {
  unsigned version, count;
  device_t **first, **second;
  struct gpm_metric metrics[1];
};

/* Each metric is its own number in percent, but that of FP16, which this GPU does not count. */
int nvmlGpmMetricsGet(struct gpm_metrics* query) {
  const char* text = getenv("FAKE_NVML_GPM");
  if (*query->first == NULL || *query->second == NULL) return 2;
  for (unsigned i = 0; i < query->count; ++i) {
    struct gpm_metric* metric = &query->metrics[i];
    metric->result = metric->id == 13 ? 3 : 0;
    metric->value = text == NULL ? metric->id : strtod(text, NULL);
  }
  return 0;
}

/* More at each call. */
int nvmlDeviceGetTotalEnergyConsumption(device_t* device, unsigned long long* millijoules) {
  static unsigned long long energy;
  *millijoules = energy += 5;
  return state_of(device);
}

int nvmlDeviceGetPcieThroughput(device_t* device, unsigned direction, unsigned* kilobytes) {
  hang_while("FAKE_NVML_SLOW_HANG_WHILE");
  *kilobytes = 1000 + direction;
  return state_of(device);
}

int nvmlDeviceGetRemappedRows(device_t* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = 1;
  *uncorrected = 2;
  *pending = 1;
  *failed = 0;
  return state_of(device);
}

int nvmlDeviceGetRetiredPages(device_t* device, unsigned cause, unsigned* count, unsigned long long* pages) {
  (void)pages;
  if (state_of(device) != 0) return state_of(device);
  *count = cause == 0 ? 4 : 0;
  return *count == 0 ? 0 : 7;
}

struct field {
  unsigned id, scope;
  long long timestamp, latency;
  unsigned type;
  int result;
  union {
    unsigned number;
    unsigned long long wide;
    int negative;
  } value;
};

int nvmlDeviceGetFieldValues(device_t* device, int count, struct field* fields) {
  for (int i = 0; i < count; ++i) {
    struct field* field = &fields[i];
    field->result = 0;
    field->type = 3;
    field->value.wide = field->id;
    if (field->id == 82) field->type = 1, field->value.number = 55;
    if (field->id == 230) field->type = 1, field->value.number = number("FAKE_NVML_RECOVERY", 0);
    if (field->id == 45) field->value.wide = ~0ull;
    if (field->id == 52) field->result = 3;
    if (field->id == 59) field->type = 5, field->value.negative = -1;
    if (field->id == 138) field->value.wide = field->scope == ~0u ? 7 : 0;
  }
  return state_of(device);
}

/* Three links: two to the other GPU, one down. */
int nvmlDeviceGetNvLinkState(device_t* device, unsigned link, unsigned* is_active) {
  if (link > 2) return 2;
  *is_active = link < 2;
  return state_of(device);
}

int nvmlDeviceGetNvLinkVersion(device_t* device, unsigned link, unsigned* version) {
  (void)link;
  *version = 2;
  return state_of(device);
}

/* No word on what the peers are: this driver is too old for that. */
int nvmlDeviceGetNvLinkRemotePciInfo(device_t* device, unsigned link, struct pci_v1* pci) {
  (void)link;
  memset(pci, 0, sizeof *pci);
  pci->bus = 0x10 + (1 - device->index);
  return state_of(device);
}

int nvmlDeviceGetTopologyCommonAncestor(device_t* one, device_t* other, unsigned* level) {
  (void)one;
  (void)other;
  *level = 40;
  return 0;
}

int nvmlEventSetCreate(void** set) {
  *set = devices;
  return 0;
}

int nvmlEventSetFree(void* set) {
  (void)set;
  return 0;
}

int nvmlDeviceGetSupportedEventTypes(device_t* device, unsigned long long* types) {
  *types = (unsigned long long)number("FAKE_NVML_EVENT_TYPES", 0x8008);
  return state_of(device);
}

int nvmlDeviceRegisterEvents(device_t* device, unsigned long long types, void* set) {
  (void)types;
  (void)set;
  return state_of(device);
}

struct event {
  device_t* device;
  unsigned long long type, value;
  unsigned gpu_instance, compute_instance;
};

static int take_event(struct event* event) {
  const char* path = getenv("FAKE_NVML_EVENT");
  FILE* file = path == NULL ? NULL : fopen(path, "r");
  unsigned index = 0;
  if (file == NULL) return 0;
  const int found = fscanf(file, "%u %llu %llu", &index, &event->type, &event->value) == 3;
  fclose(file);
  if (!found || index >= 64) return 0;
  event->device = &devices[index];
  unlink(path);
  return 1;
}

int nvmlEventSetWait_v2(void* set, struct event* event, unsigned timeout_ms) {
  const struct timespec step = {0, 5000000};
  (void)set;
  for (unsigned waited = 0;; waited += 5) {
    hang_while("FAKE_NVML_EVENTS_HANG_WHILE");
    if (take_event(event)) return 0;
    if (waited >= timeout_ms) return 10;
    nanosleep(&step, NULL);
  }
}
#endif
