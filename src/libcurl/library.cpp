#include "libcurl/library.h"

#include <dlfcn.h>

#include "base/check.h"

namespace gpu_platform::libcurl {

namespace {

// As long as the interface of the headers that this was compiled with: libcurl's has been the same
// since 2006.
constexpr const char* kFile = "libcurl.so.4";

struct Loaded {
  Library functions;
  std::string problem;  // empty: it can be used
};

Loaded find_functions() {
  Loaded loaded;
  void* handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = dlerror();
    loaded.problem = words == nullptr ? kFile : words;
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr && loaded.problem.empty()) {
      loaded.problem = fmt::format("{} has no {}", kFile, name);
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  Library& found = loaded.functions;
  find("curl_easy_cleanup", found.easy_cleanup);
  find("curl_easy_getinfo", found.easy_getinfo);
  find("curl_easy_init", found.easy_init);
  find("curl_easy_reset", found.easy_reset);
  find("curl_easy_setopt", found.easy_setopt);
  find("curl_easy_strerror", found.easy_strerror);
  find("curl_free", found.free);
  find("curl_multi_add_handle", found.multi_add_handle);
  find("curl_multi_assign", found.multi_assign);
  find("curl_multi_cleanup", found.multi_cleanup);
  find("curl_multi_info_read", found.multi_info_read);
  find("curl_multi_init", found.multi_init);
  find("curl_multi_perform", found.multi_perform);
  find("curl_multi_poll", found.multi_poll);
  find("curl_multi_remove_handle", found.multi_remove_handle);
  find("curl_multi_setopt", found.multi_setopt);
  find("curl_multi_socket_action", found.multi_socket_action);
  find("curl_slist_append", found.slist_append);
  find("curl_slist_free_all", found.slist_free_all);
  find("curl_url", found.url);
  find("curl_url_cleanup", found.url_cleanup);
  find("curl_url_get", found.url_get);
  find("curl_url_set", found.url_set);
  decltype(&curl_global_init) initialise = nullptr;
  find("curl_global_init", initialise);
  if (loaded.problem.empty() && initialise(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    loaded.problem = "it cannot be initialised";
  }
  return loaded;
}

const Loaded& loaded_library() {
  static const Loaded loaded = find_functions();
  return loaded;
}

}  // namespace

base::Status load() {
  const std::string& problem = loaded_library().problem;
  if (problem.empty()) return {};
  return base::fail(base::ErrorCode::kUnavailable,
                    fmt::format("libcurl, with which the platform calls clusters and sends alerts, "
                                "cannot be used: {}; Debian has it in libcurl4",
                                problem));
}

const Library& curl() {
  CHECK(loaded_library().problem.empty());
  return loaded_library().functions;
}

}  // namespace gpu_platform::libcurl
