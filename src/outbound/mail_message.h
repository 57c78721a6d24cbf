#pragma once

#include <string>

#include "outbound/channel.h"

namespace gpu_platform::outbound {

// The delivery as a message of RFC 5322 and MIME, with CRLF at the end of each line. Its Message-ID
// follows from the delivery's key, so that mail programs know a repeated one again. Characters of
// control in the subject become spaces: it can add no header. A body that is not ASCII, or has long
// lines, is in Base64. Lines that begin with a dot are as they are: the transfer stuffs them.
std::string mail_message(const Channel& channel, const Delivery& delivery);

}  // namespace gpu_platform::outbound
