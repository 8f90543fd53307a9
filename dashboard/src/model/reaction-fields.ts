import type { FieldSection } from './field-words.ts';

/** What a group learns from its upstream, when calls are sent again, and how long slots stay down. */
export const REACTION_FIELDS: FieldSection = {
  id: 'reactions',
  title: 'Reactions to the upstream',
  help: 'What is learned from refusals, when calls are sent again, and how long slots stay down.',
  fields: {
    adaptive: {
      label: 'Adaptive',
      help: 'auto learns from refusals how many calls the upstream takes at once; off goes by the limit.',
    },
    'retries.max': {
      label: 'Retries',
      help: 'More tries after an overload, a 5xx or a broken connection.',
      unit: 'tries',
    },
    'retries.max_body_bytes': {
      label: 'Retried bodies up to',
      help: 'Larger bodies are not kept, so their calls are not sent again.',
      unit: 'bytes',
    },
    'retries.budget': {
      label: 'Retry budget',
      help: 'Such tries as a part of recent calls.',
      unit: 'of calls',
    },
    'feed_forward.keep_requests': {
      label: 'Requests kept back',
      help: 'Waits when the upstream’s headers leave fewer requests than this, or than the share below if that is less.',
      unit: 'requests',
    },
    'feed_forward.keep_share': {
      label: 'Share kept back',
      help: 'Waits when a smaller part of a limit is left by the upstream’s headers.',
      unit: 'of the limit',
    },
    'feed_forward.wait_max_ms': {
      label: 'Longest such pause',
      help: 'Longest pause for a header that says that little is left.',
      unit: 'ms',
    },
    'holds.release_cooldown_ms': {
      label: 'Cool-down after success',
      help: 'How long a slot stays down after a call that ended well, because providers’ counters lag.',
      unit: 'ms',
    },
    'holds.cancel_cooldown_ms': {
      label: 'Cool-down after a cancel',
      help: 'The same after a call that was cut short.',
      unit: 'ms',
    },
    'holds.failure_hold_ms': {
      label: 'Cool-down after a failure',
      help: 'The same after a 429 or 5xx of the upstream.',
      unit: 'ms',
    },
    'holds.idle_ms': {
      label: 'Longest silence',
      help: 'Of the upstream; then the call is cut. Empty: only the wait for headers is watched, 10 minutes.',
      unit: 'ms',
    },
    'holds.stalled_ms': {
      label: 'Longest stall',
      help: 'In which the caller takes nothing of what is there for it; then the call is cut. Empty: any.',
      unit: 'ms',
    },
    'holds.max_hold_ms': {
      label: 'Longest call',
      help: 'Longest time that one call may hold its slot.',
      unit: 'ms',
    },
  },
};
