#pragma once
/// The hooks by which nodes join containers without allocating: the only place that includes Boost.Intrusive.
///
/// Links are not checked (`normal_link`): a node is in as many containers as its state says, and `validate()` proves
/// it.

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

namespace gmlake {

namespace intrusive = boost::intrusive;

using list_hook = intrusive::list_member_hook<intrusive::link_mode<intrusive::normal_link>>;
using set_hook =
    intrusive::set_member_hook<intrusive::link_mode<intrusive::normal_link>, intrusive::optimize_size<false>>;

/// A doubly linked list of `T` through its member `Hook`; it does not count its members.
template <class T, list_hook T::* Hook>
using hooked_list =
    intrusive::list<T, intrusive::member_hook<T, list_hook, Hook>, intrusive::constant_time_size<false>>;

/// A balanced tree of `T` through its member `Hook`, ordered by `Less`, which must be total.
template <class T, set_hook T::* Hook, class Less>
using hooked_set = intrusive::set<T, intrusive::member_hook<T, set_hook, Hook>, intrusive::compare<Less>,
                                  intrusive::constant_time_size<false>>;

}  // namespace gmlake
