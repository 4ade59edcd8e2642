#pragma once
/// The intrusive containers in which PyTorch's models keep blocks and segments: nodes carry their links, so that no
/// insertion allocates or fails. They count nothing and check no links; a node must be out of its container to die.

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

namespace gmlake::pytorch_hooks {

namespace bi = boost::intrusive;
using list_hook = bi::list_base_hook<bi::link_mode<bi::normal_link>>;
using set_hook = bi::set_base_hook<bi::link_mode<bi::normal_link>>;

template <class Node>
using list = bi::list<Node, bi::constant_time_size<false>>;

template <class Node, class Less>
using set = bi::set<Node, bi::compare<Less>, bi::constant_time_size<false>>;

}  // namespace gmlake::pytorch_hooks
