#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "api/convert/field_plan.h"
#include "api/rest/proto_comments.h"

// The schemas of fields in the OpenAPI document: their types, limits and references.

namespace gpu_platform::api {

using OrderedJson = nlohmann::ordered_json;

// Returns the name of a message or an enumeration in the document.
std::string schema_name(const std::string& name);

// Returns a reference to the schema of the type.
OrderedJson schema_reference(const google::protobuf::Descriptor& type);

// Returns the schema of one value, also for a field that is a list.
OrderedJson value_schema(const FieldPlan& field);

// Returns the schema of the whole field, with its comment. `is_request`: it may be null.
OrderedJson field_schema(const FieldPlan& field, const ProtoComments& comments, bool is_request);

}  // namespace gpu_platform::api
