#pragma once

namespace gpu_platform::node {

// Removes `name` in the folder `parent` and all below it, which may belong to a hostile user. It
// follows no link, leaves no file system, needs the same few handles for any depth, and stops if
// something is moved meanwhile. Returns true when nothing is left.
bool remove_tree(int parent, const char* name);

}  // namespace gpu_platform::node
