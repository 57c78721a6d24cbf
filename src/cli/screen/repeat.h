#pragma once

#include <functional>
#include <string>

#include "cli/client_names.h"
#include "cli/text/output.h"

// Commands that show something, once or, with --watch, again and again.

namespace gpu_platform::cli {

// Shows the thing on this console, in the command's form. The descriptor ends a call that waits.
using Look = std::function<Called<void>(Console& console, int interrupt_fd)>;

// Looks once. With --watch: again after each interval, on a terminal in place, elsewhere one block
// after the other, until an interrupt (exit code 130) or q. A daemon that goes away meanwhile is
// waited for, and that is said.
int show(Console& console, const Output& output, const Look& look);

// The same for something that comes to an end. With --watch it is asked after each look: when it
// says yes, what the look has shown is the last of it, and stays on the terminal (exit code 0).
using IsOver = std::function<bool()>;
int show_until(Console& console, const Output& output, const Look& look, const IsOver& is_over);

// Prints an answer for people; false if it is not what it should be.
using Print = std::function<bool(Console& console, const std::string& answer)>;

// The same for the answer to one GET: as a document where one is wanted, else by `print`.
int show_answer(Console& console, Client& client, const Output& output, const std::string& target,
                const Print& print);

// The same for an answer that is a message: print(console, message).
template <class Message, class PrintMessage>
int show_message(Console& console, Client& client, const Output& output, const std::string& target,
                 PrintMessage&& print) {
  return show_answer(console, client, output, target,
                     [&](Console& shown, const std::string& answer) {
                       auto message = client::message_of<Message>(answer);
                       if (message) print(shown, *message);
                       return message.has_value();
                     });
}

}  // namespace gpu_platform::cli
