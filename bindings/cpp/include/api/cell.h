// A graph as a piece of a network: for the signature of Model::Build, which refuses it.
#ifndef MINDSPORE_INCLUDE_API_CELL_H
#define MINDSPORE_INCLUDE_API_CELL_H

#include <memory>

#include "include/api/graph.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace mindspore {
class GraphCell final {
 public:
  GraphCell() = default;
  explicit GraphCell(const Graph &graph) : graph_(std::make_shared<Graph>(graph)) {}
  explicit GraphCell(const std::shared_ptr<Graph> &graph) : graph_(graph) {}

  const std::shared_ptr<Graph> &GetGraph() const { return graph_; }

 private:
  std::shared_ptr<Graph> graph_;
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_CELL_H
