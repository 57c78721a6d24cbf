# gp_boost: Boost's network libraries, whose functions that are no templates are compiled once here and not in every
# source that uses them.
find_package(Boost 1.81 CONFIG REQUIRED)
find_package(Threads REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/gp_boost.cpp "#include <boost/asio/impl/src.hpp>\n#include <boost/beast/src.hpp>\n")
add_library(gp_boost STATIC ${CMAKE_BINARY_DIR}/gp_boost.cpp)
target_compile_options(gp_boost PRIVATE -w $<$<CONFIG:RelWithDebInfo>:-Og>)
target_compile_definitions(gp_boost PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(gp_boost PUBLIC Boost::headers Threads::Threads)

# gp_boost_tls: TLS over OpenSSL in addition, for those who have no TLS of their own.
find_package(OpenSSL REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/gp_boost_tls.cpp "#include <boost/asio/ssl/impl/src.hpp>\n")
add_library(gp_boost_tls STATIC ${CMAKE_BINARY_DIR}/gp_boost_tls.cpp)
target_compile_options(gp_boost_tls PRIVATE -w)
target_link_libraries(gp_boost_tls PUBLIC gp_boost OpenSSL::SSL)
