#pragma once

namespace gpu_platform::node {

// Removes `name` in the folder `parent` and all below it, which may belong to somebody hostile:
// follows no link, leaves no file system, needs the same few handles for any depth, and stops where
// something is moved while it works. True when nothing is left of it.
bool remove_tree(int parent, const char* name);

}  // namespace gpu_platform::node
