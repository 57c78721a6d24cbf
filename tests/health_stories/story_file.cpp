#include "story_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::health {

namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  fmt::print(stderr, "{}: {}\n", where, what);
  std::abort();
}

GpuLabel gpu_label(const std::string& where, const std::string& text) {
  if (text == "fit") return GpuLabel::kFit;
  if (text == "sick") return GpuLabel::kSick;
  if (text == "healed") return GpuLabel::kHealed;
  if (text == "either") return GpuLabel::kEither;
  fail(where, "no label of a GPU: " + text);
}

JobLabel job_label(const std::string& where, const std::string& text) {
  if (text == "application") return JobLabel::kApplication;
  if (text == "hardware") return JobLabel::kHardware;
  if (text == "either") return JobLabel::kEither;
  fail(where, "no label of a job: " + text);
}

std::map<std::string, JobLabel> job_labels(const std::string& where, const json& labels) {
  std::map<std::string, JobLabel> read;
  for (const auto& [job, text] : labels.items()) {
    read.emplace(job, job_label(where, text.get<std::string>()));
  }
  return read;
}

Story read_header(const std::string& file, const json& header) {
  Story story;
  story.file = file;
  story.name = header.at("story").get<std::string>();
  story.split = header.at("split").get<std::string>();
  story.fault_class = header.at("class").get<std::string>();
  story.source = header.at("source").get<std::string>();
  const std::string where = file + "/" + story.name;
  const json& label = header.at("label");
  for (const auto& [gpu, text] : label.at("gpus").items()) {
    story.gpus.emplace(gpu, gpu_label(where, text.get<std::string>()));
  }
  story.jobs = job_labels(where, label.at("jobs"));
  if (label.contains("jobs_later")) story.jobs_later = job_labels(where, label["jobs_later"]);
  return story;
}

// The header tells the reader until when the story was looked at.
void read_lines(Story& story, const std::string& lines) {
  const std::string where = story.file + "/" + story.name;
  auto evidence = read_evidence(lines);
  if (!evidence) fail(where, evidence.error().message);
  story.evidence = std::move(*evidence);
  if (!story.evidence.notes.empty()) fail(where, story.evidence.notes.front());
}

void read_file(const std::filesystem::path& path, std::vector<Story>& stories) {
  std::ifstream in(path);
  std::string line;
  std::string lines;
  json header;
  const auto finish = [&] {
    if (header.is_null()) return;
    stories.push_back(read_header(path.stem().string(), header));
    read_lines(stories.back(), lines);
    lines.clear();
  };
  while (std::getline(in, line)) {
    if (line.starts_with("{\"story\"")) {
      finish();
      header = json::parse(line);
    }
    lines += line + "\n";
  }
  finish();
}

}  // namespace

GpuLabel Story::label_of(const std::string& gpu) const {
  const auto found = gpus.find(gpu);
  return found == gpus.end() ? GpuLabel::kFit : found->second;
}

std::vector<Story> read_stories(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Story> stories;
  for (const auto& file : files) read_file(file, stories);
  return stories;
}

}  // namespace gpu_platform::health
