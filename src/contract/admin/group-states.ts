/** The state of a group in a few words, the worst first. */
export const GROUP_STATES = [
  'unreachable',
  'broken',
  'budget spent',
  'paused',
  'refused by upstream',
  'nothing served',
  'full',
  'partly paused',
  'rate limited',
  'draining',
  'dry run',
  'flowing',
] as const;
