import type { WaitHeader } from '../upstream/refusal/refusal-delay.ts';

/** A window of an Anthropic subscription that is used up. */
function unified(window: string): WaitHeader {
  const prefix = `anthropic-ratelimit-unified-${window}`;
  return {
    name: `${prefix}reset`,
    onlyIf: { name: `${prefix}status`, is: /^(?:rejected|blocked)/i },
  };
}

/** A window of a ChatGPT plan of which 100 % or more is used. */
function codex(window: 'primary' | 'secondary', reset: string): WaitHeader {
  const prefix = `x-codex-${window}`;
  return {
    name: `${prefix}-${reset}`,
    onlyIf: { name: `${prefix}-used-percent`, is: /^\s*[1-9]\d{2,}(?:\.\d+)?\s*$/ },
  };
}

/**
 * Headers of a refusal that name the end of a used-up window. They are read from every upstream, because gateways pass
 * them on. Seen in answers to subscribers, undocumented, 2026-11-20.
 */
export const WAIT_HEADERS: readonly WaitHeader[] = [
  unified('5h-'),
  unified('7d-'),
  unified('7d_opus-'),
  unified('7d_sonnet-'),
  unified(''),
  codex('primary', 'reset-after-seconds'),
  codex('primary', 'reset-at'),
  codex('secondary', 'reset-after-seconds'),
  codex('secondary', 'reset-at'),
];
