#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "cli/text/json_view.h"
#include "shims/command_call.h"

// What --json and --yaml print: which form of Slurm's documents, and how it is written.

namespace gpu_platform::shims {

// Slurm 24.11 writes the last three; the first is that of 22.05, for programs that name it.
enum class DocumentForm : std::uint8_t { k38, k40, k41, k42 };

struct DocumentStyle {
  DocumentForm form = DocumentForm::k42;
  bool is_yaml = false;
  bool is_compact = false;  // JSON in one line: SLURM_JSON=compact
};

// What the options ask for; nothing without them. Instead of it the exit code where that is all:
// after "list", and after a form that there is not.
std::expected<std::optional<DocumentStyle>, int> document_style(CommandCall& call,
                                                                const Settings& settings);

// Prints the document with what every document has: who printed what, and no errors. Returns the
// exit code.
int print_document(CommandCall& call, const DocumentStyle& style, cli::Json document);

// {"set": true, "infinite": false, "number": 7}; one that is not set.
cli::Json set_number(std::int64_t number);
cli::Json set_number(const std::optional<std::int64_t>& number);
cli::Json unset_number();
cli::Json infinite_number();

// The document as YAML with the types of its values.
std::string yaml_text(const cli::Json& document);

}  // namespace gpu_platform::shims
