// A graph in memory. Models are built from files or their bytes here (Model::Build), so a Graph is
// never more than empty: it is for the signatures of cell.h and model.h.
#ifndef MINDSPORE_INCLUDE_API_GRAPH_H
#define MINDSPORE_INCLUDE_API_GRAPH_H

#include <cstddef>
#include <memory>

#include "include/api/status.h"
#include "include/api/types.h"

namespace mindspore {
class Graph {
 public:
  class GraphData;
  Graph() = default;
  explicit Graph(std::nullptr_t) {}
  explicit Graph(const std::shared_ptr<GraphData> &graph_data) : graph_data_(graph_data) {}

  enum ModelType ModelType() const { return kUnknownType; }
  bool operator==(std::nullptr_t) const { return graph_data_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return graph_data_ != nullptr; }

 private:
  std::shared_ptr<GraphData> graph_data_;
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_GRAPH_H
