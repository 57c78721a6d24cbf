# cmake -DINPUT=<file> -DOUTPUT=<cpp> -P embed.cmake: the bytes of a file as a C++ array.
file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "#include \"gpu_platform/v1/descriptors.h\"\n"
     "namespace gpu_platform::v1 {\n"
     "static const unsigned char kBytes[${size}] = {${bytes}};\n"
     "std::string_view descriptor_set() { return {reinterpret_cast<const char*>(kBytes), sizeof kBytes}; }\n"
     "}  // namespace gpu_platform::v1\n")
