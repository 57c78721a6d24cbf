#include "model/container.h"
#include "model/job_spec.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::model {

namespace {

constexpr std::size_t kMaxReference = 512;
constexpr std::size_t kMaxTag = 128;
constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kMaxPlatform = 64;
constexpr std::size_t kMaxAnnotations = 64;
constexpr std::size_t kMaxAnnotationKey = 253;
constexpr std::size_t kMaxAnnotationValue = 1024;
constexpr std::size_t kMaxDnsLabel = 63;
constexpr std::size_t kMaxShown = 64;  // of a text in an error

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_letter_or_digit(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

// Letters and digits, with single separators between them.
bool is_name_part(std::string_view text) {
  const auto is_allowed = [](char c) {
    return is_lower_or_digit(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::ranges::all_of(text, is_allowed) && text.find("..") == std::string_view::npos;
}

bool is_port(std::string_view text) {
  return base::parse_count(text, 1, 65535).has_value();
}

bool is_host(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && !is_port(text.substr(colon + 1))) return false;
  const std::string_view name = text.substr(0, colon);
  const auto is_allowed = [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-'; };
  return !name.empty() && is_letter_or_digit(name.front()) && is_letter_or_digit(name.back()) &&
         std::ranges::all_of(name, is_allowed) && name.find("..") == std::string_view::npos;
}

// The first part is a host if nothing else can look like it.
bool looks_like_host(std::string_view part) {
  return part == "localhost" || part.find_first_of(".:") != std::string_view::npos;
}

bool is_tag(std::string_view text) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxTag && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, is_allowed);
}

bool is_digest(std::string_view text) {
  constexpr std::string_view kBegin = "sha256:";
  if (!text.starts_with(kBegin) || text.size() != kBegin.size() + kDigestDigits) return false;
  return text.find_first_not_of("0123456789abcdef", kBegin.size()) == std::string_view::npos;
}

bool is_path_of_names(std::string_view text, bool may_have_host) {
  for (bool is_first = true;; is_first = false) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    const bool is_place =
        is_first && may_have_host && slash != std::string_view::npos && looks_like_host(part);
    if (is_place ? !is_host(part) : !is_name_part(part)) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

// Absolute, and each part is a name; no ':', which separates the parts of a mount.
std::string error_in_path(std::string_view path) {
  if (!path.starts_with('/')) return "is not an absolute path";
  if (path.find(':') != std::string_view::npos) return "contains ':'";
  for (std::string_view rest = path.substr(1); !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part == "." || part == "..") return "contains '" + std::string(part) + "'";
    if (part.empty()) return "contains '//'";
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  }
  return {};
}

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

constexpr std::array<std::string_view, 3> kOfEngine = {"/proc", "/sys", "/dev"};

std::string error_in_engines_folder(std::string_view path) {
  for (const std::string_view folder : kOfEngine) {
    if (is_within(path, folder))
      return fmt::format("is in {}, which belongs to the engine", folder);
  }
  return {};
}

// Of the host.
std::string error_in_source(std::string_view path) {
  if (std::string why = error_in_path(path); !why.empty()) return why;
  if (path == "/") return "is the host's root";
  return error_in_engines_folder(path);
}

std::string_view shown(std::string_view text) {
  return text.substr(0, kMaxShown);
}

base::Status wrong(std::string_view field, std::string_view message) {
  return base::invalid(std::string(field), fmt::format("{}: {}", field, message));
}

bool is_domain(std::string_view text) {
  const auto is_allowed = [](char c) { return is_lower_or_digit(c) || c == '.' || c == '-'; };
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::ranges::all_of(text, is_allowed) && text.find("..") == std::string_view::npos;
}

bool is_in_domain(std::string_view name, std::string_view domain) {
  if (!name.ends_with(domain)) return false;
  return name.size() == domain.size() || name[name.size() - domain.size() - 1] == '.';
}

// No two things in one place.
base::Status check_places(const JobSpec& spec) {
  std::set<std::string> targets;
  for (std::size_t i = 0; i < spec.mounts.size(); ++i) {
    const std::string field = fmt::format("mounts[{}]", i);
    auto mount = parse_container_mount(spec.mounts[i]);
    if (!mount) return wrong(field, mount.error().message);
    if (!targets.insert(mount->target).second) {
      return wrong(field, fmt::format("'{}' is named twice", shown(mount->target)));
    }
  }
  for (std::size_t i = 0; i < spec.tmpfs.size(); ++i) {
    const std::string field = fmt::format("tmpfs[{}]", i);
    auto tmpfs = parse_container_tmpfs(spec.tmpfs[i]);
    if (!tmpfs) return wrong(field, tmpfs.error().message);
    if (!targets.insert(tmpfs->target).second) {
      return wrong(field, fmt::format("'{}' is named twice", shown(tmpfs->target)));
    }
  }
  return {};
}

base::Status check_annotations(const JobSpec& spec) {
  if (spec.annotations.size() > kMaxAnnotations) {
    return wrong("annotations", fmt::format("there are more than {}", kMaxAnnotations));
  }
  for (const Label& annotation : spec.annotations) {
    const std::string why = error_in_annotation(annotation.key, annotation.value);
    if (!why.empty()) {
      return wrong("annotations", fmt::format("'{}' {}", shown(annotation.key), why));
    }
  }
  return {};
}

// One reason why a job cannot run on an engine.
struct UnsupportedCase {
  std::string_view field;
  bool is_there = false;
  std::string_view why;
};

Unsupported first_of(std::span<const UnsupportedCase> cases) {
  const auto found = std::ranges::find_if(cases, &UnsupportedCase::is_there);
  if (found == cases.end()) return {};
  return {std::string(found->field), fmt::format("{}: {}", found->field, found->why)};
}

Unsupported unsupported_annotation(const JobSpec& spec) {
  for (const Label& annotation : spec.annotations) {
    const std::string why = error_in_pod_annotation(annotation.key);
    if (why.empty()) continue;
    return {"annotations", fmt::format("annotations: '{}' {}", shown(annotation.key), why)};
  }
  return {};
}

base::Status check_no_container(const JobSpec& spec) {
  const JobSpec none;
  const std::pair<std::string_view, bool> given[] = {
      {"mounts", !spec.mounts.empty()},
      {"tmpfs", !spec.tmpfs.empty()},
      {"shm_size_bytes", spec.shm_size != none.shm_size},
      {"container_network", spec.container_network != none.container_network},
      {"entrypoint", !spec.entrypoint.empty()},
      {"pull", spec.pull != none.pull},
      {"container_workdir", !spec.container_workdir.empty()},
      {"container_platform", !spec.container_platform.empty()},
      {"annotations", !spec.annotations.empty()},
  };
  for (const auto& [field, is_given] : given) {
    if (is_given) return wrong(field, "is for a job with an image, and the job sets none");
  }
  return {};
}

}  // namespace

std::string error_in_place(std::string_view path) {
  if (std::string why = error_in_path(path); !why.empty()) return why;
  if (path == "/") return "is the root of the container";
  if (is_within(path, "/etc")) return "is in /etc, which belongs to the platform";
  return error_in_engines_folder(path);
}

std::string error_in_workdir(std::string_view path) {
  if (std::string why = error_in_path(path); !why.empty()) return why;
  return error_in_engines_folder(path);
}

std::string error_in_image(std::string_view reference) {
  constexpr std::string_view kForm =
      "is not a reference to an image such as registry.example.org/team/name:tag";
  if (reference.empty() || reference.size() > kMaxReference) return std::string(kForm);
  std::string_view rest = reference;
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos && !is_digest(rest.substr(at + 1))) {
    return "has a digest that is not sha256: and 64 hexadecimal digits";
  }
  rest = rest.substr(0, at);
  const std::size_t colon = rest.rfind(':');
  const bool has_tag = colon != std::string_view::npos && rest.find('/', colon) == rest.npos;
  if (has_tag && !is_tag(rest.substr(colon + 1))) {
    return "has a tag that is not 1 to 128 letters, digits, '_', '.' and '-'";
  }
  if (has_tag) rest = rest.substr(0, colon);
  return is_path_of_names(rest, true) ? "" : std::string(kForm);
}

std::string error_in_platform(std::string_view platform) {
  constexpr std::string_view kForm =
      "is not the platform of an image; write linux/ARCH or linux/ARCH/VARIANT, as in linux/arm64";
  constexpr std::string_view kSystem = "linux/";
  if (platform.size() > kMaxPlatform || !platform.starts_with(kSystem)) return std::string(kForm);
  const std::string_view rest = platform.substr(kSystem.size());
  const std::size_t slash = rest.find('/');
  const bool has_variant = slash != std::string_view::npos;
  const bool is_right =
      is_name_part(rest.substr(0, slash)) && (!has_variant || is_name_part(rest.substr(slash + 1)));
  return is_right ? "" : std::string(kForm);
}

std::string error_in_annotation(std::string_view key, std::string_view value) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-' || c == '/';
  };
  const bool is_key = !key.empty() && key.size() <= kMaxAnnotationKey &&
                      is_letter_or_digit(key.front()) && is_letter_or_digit(key.back()) &&
                      std::ranges::all_of(key, is_allowed);
  if (!is_key) {
    return fmt::format(
        "is not a key of 1 to {} letters, digits, '.', '_', '-' and '/' with a letter or digit at "
        "both ends",
        kMaxAnnotationKey);
  }
  if (key.starts_with("gpu-platform.")) return "begins with gpu-platform., which is the platform's";
  if (value.size() > kMaxAnnotationValue) {
    return fmt::format("has a value of more than {} bytes", kMaxAnnotationValue);
  }
  return value.find('\0') != value.npos ? "has a value with a NUL" : "";
}

std::string error_in_pod_annotation(std::string_view key) {
  const std::size_t slash = key.find('/');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? key.substr(0, slash) : std::string_view();
  const std::string_view name = has_domain ? key.substr(slash + 1) : key;
  const bool is_name = !name.empty() && name.size() <= kMaxDnsLabel &&
                       is_letter_or_digit(name.front()) && is_letter_or_digit(name.back()) &&
                       name.find('/') == std::string_view::npos;
  if (!is_name || (has_domain && !is_domain(domain))) {
    return fmt::format(
        "is not a key as pods have it; write NAME or DOMAIN/NAME, with a name of at most {} "
        "letters, digits, '.', '_' and '-'",
        kMaxDnsLabel);
  }
  if (is_in_domain(domain, "gpu-platform")) return "belongs to the platform";
  if (is_in_domain(domain, "kubernetes.io") || is_in_domain(domain, "k8s.io")) {
    return "belongs to Kubernetes";
  }
  if (name.ends_with(".gpus.devices")) return "chooses devices, and the platform does that";
  return {};
}

base::Result<ContainerMount> parse_container_mount(std::string_view text) {
  const auto invalid = [&](std::string_view why) {
    return base::invalid({}, fmt::format("'{}' {}; write SRC:DST or SRC:DST:ro", shown(text), why));
  };
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return invalid("has no ':'");
  ContainerMount mount;
  mount.source = text.substr(0, first);
  std::string_view rest = text.substr(first + 1);
  const std::size_t second = rest.find(':');
  mount.target = rest.substr(0, second);
  if (second != std::string_view::npos) {
    const std::string_view mode = rest.substr(second + 1);
    if (mode != "ro" && mode != "rw") return invalid("ends with neither ro nor rw");
    mount.read_only = mode == "ro";
  }
  if (const std::string why = error_in_source(mount.source); !why.empty()) {
    return invalid("has a source that " + why);
  }
  if (const std::string why = error_in_place(mount.target); !why.empty()) {
    return invalid("has a target that " + why);
  }
  return mount;
}

base::Result<ContainerTmpfs> parse_container_tmpfs(std::string_view text) {
  constexpr std::int64_t kPage = 4096;
  const auto invalid = [&](std::string_view why) {
    return base::invalid(
        {}, fmt::format("'{}' {}; write DST:SIZE, as in /scratch:2G", shown(text), why));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid("has no size");
  ContainerTmpfs tmpfs;
  tmpfs.target = text.substr(0, colon);
  const auto size = base::parse_size(text.substr(colon + 1));
  if (!size || size->value() < kPage) return invalid("has no size of at least 4 KiB");
  tmpfs.size = *size;
  if (const std::string why = error_in_place(tmpfs.target); !why.empty()) {
    return invalid("has a folder that " + why);
  }
  return tmpfs;
}

base::Status check_container(const JobSpec& spec) {
  if (spec.image.empty()) return check_no_container(spec);
  if (const std::string why = error_in_image(spec.image); !why.empty()) {
    return wrong("image", fmt::format("'{}' {}", shown(spec.image), why));
  }
  TRY(check_places(spec));
  if (!spec.container_workdir.empty()) {
    const std::string why = error_in_workdir(spec.container_workdir);
    if (!why.empty()) {
      return wrong("container_workdir", fmt::format("'{}' {}", shown(spec.container_workdir), why));
    }
  }
  if (!spec.container_platform.empty()) {
    const std::string why = error_in_platform(spec.container_platform);
    if (!why.empty()) {
      return wrong("container_platform",
                   fmt::format("'{}' {}", shown(spec.container_platform), why));
    }
  }
  return check_annotations(spec);
}

Unsupported unsupported_by_host_container(const JobSpec& spec) {
  const UnsupportedCase cases[] = {
      {"image", is_gang(spec.request) || spec.per_gpu,
       "in a container of this host a job has one process on one node; leave out nodes, "
       "allow_cross_node and per_gpu"},
      {"limit_signal", spec.limit_signal && spec.limit_signal->first_process_only,
       "in a container of this host the signal goes to all processes; leave out 'B:'"},
  };
  return first_of(cases);
}

Unsupported unsupported_by_kubernetes(const JobSpec& spec) {
  if (!spec.workload.empty()) return {};  // its pods are there
  const UnsupportedCase cases[] = {
      {"gpu_share", is_part(spec.request),
       "parts of a GPU run as processes and in containers of this host's engine, not in "
       "Kubernetes; ask for a whole GPU"},
      {"image", spec.image.empty(), "a pod runs an image, and the job sets none"},
      {"user", spec.uid == 0, "a pod does not run as root: submit the job as another user"},
      {"mounts", !spec.mounts.empty(), "a pod has no folders of the host"},
      {"container_platform", !spec.container_platform.empty(),
       "a pod runs what its node's processor runs"},
      {"output", !spec.output.empty(),
       "a pod writes to no file of the user; leave it out, and the platform keeps the output"},
      {"error", !spec.error.empty(),
       "a pod writes to no file of the user; leave it out, and the platform keeps the output"},
      {"prolog", !spec.prolog.empty(), "a pod runs no program before the command"},
      {"epilog", !spec.epilog.empty(), "a pod runs no program after the command"},
      {"container_network", spec.container_network == ContainerNetwork::kHost,
       "a pod does not use the network of its host"},
      {"limit_signal", spec.limit_signal.has_value(),
       "Kubernetes delivers no signals; a pod gets SIGTERM and its grace at its time limit"},
      {"first_node_only", spec.first_node_only && is_gang(spec.request),
       "the pods of a gang are one for each node or GPU"},
      {"hang_timeout_seconds", spec.hang_timeout != base::Duration(),
       "the platform reads no activity of a pod's GPUs"},
      {"preflight", spec.preflight != Preflight::kNone, "the platform checks no GPUs of a cluster"},
      {"monitor", spec.monitor, "the platform reads no GPUs of a cluster each second"},
  };
  Unsupported unsupported = first_of(cases);
  return unsupported.field.empty() ? unsupported_annotation(spec) : unsupported;
}

namespace {

Unsupported unsupported_by_process(const JobSpec& spec) {
  return spec.image.empty() ? Unsupported() : unsupported_by_host_container(spec);
}

// By kind: one row an engine.
using UnsupportedBy = Unsupported (*)(const JobSpec&);
constexpr UnsupportedBy kUnsupportedBy[] = {unsupported_by_process, unsupported_by_kubernetes};
static_assert(std::size(kUnsupportedBy) == kEngineKinds);

}  // namespace

Unsupported unsupported_by(EngineKind engine, const JobSpec& spec) {
  return kUnsupportedBy[static_cast<std::size_t>(engine)](spec);
}

}  // namespace gpu_platform::model
