#include "rendezvous/agent/lifecycle_events.h"

namespace elastic::agent {

Event::Event(const Event& other) = default;
Event::Event(Event&& other) noexcept = default;
Event& Event::operator=(const Event& other) = default;
Event& Event::operator=(Event&& other) noexcept = default;
Event::~Event() = default;

Effect::Effect(const Effect& other) = default;
Effect::Effect(Effect&& other) noexcept = default;
Effect& Effect::operator=(const Effect& other) = default;
Effect& Effect::operator=(Effect&& other) noexcept = default;
Effect::~Effect() = default;

}  // namespace elastic::agent
