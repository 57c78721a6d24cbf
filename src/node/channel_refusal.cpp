#include "node/channel_refusal.h"

#include "model/channel.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

void refuse_channel(int channel, std::string_view why, std::uint8_t value) {
  // If the packet does not go at once, it is dropped: the client sees the end anyway.
  os::send_packet(channel,
                  model::encode_frame(model::EndFrame{model::ChannelEnd::kNotOpened, value, why}));
}

}  // namespace gpu_platform::node
