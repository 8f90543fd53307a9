import type { RecordedProvider, SeenHeaders } from '../seen-refusal.ts';

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

/** Headers as providers sent them, or document that they send them. */
const HEADERS: Readonly<Record<string, SeenHeaders>> = {
  openai: [
    {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-limit-tokens': '30000',
      'x-ratelimit-remaining-tokens': '29977',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-limit-project-tokens': '1000',
      'x-ratelimit-remaining-project-tokens': '10',
      'x-ratelimit-reset-project-tokens': '9ms',
      'x-ratelimit-remaining-tokens_usage_based': '7',
    },
    ['requests', MINUTE, 500, 499, 120],
    ['tokens', MINUTE, 30_000, 29_977, 360_000],
    ['tokens', MINUTE, 1_000, 10, 9],
    ['tokens', MINUTE, null, 7, null],
  ],
  anthropic: [
    {
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2026-10-06T12:00:01Z',
      'anthropic-ratelimit-tokens-limit': '38000',
      'anthropic-ratelimit-tokens-remaining': '37000',
      'anthropic-ratelimit-tokens-reset': '2026-10-06T12:00:02Z',
      'anthropic-ratelimit-input-tokens-limit': '30000',
      'anthropic-ratelimit-input-tokens-remaining': '30000',
      'anthropic-ratelimit-input-tokens-reset': '2026-10-06T12:00:00Z',
      'anthropic-ratelimit-output-tokens-limit': '8000',
      'anthropic-ratelimit-output-tokens-remaining': '7000',
      'anthropic-ratelimit-output-tokens-reset': '2026-10-06T12:00:07Z',
    },
    ['requests', MINUTE, 50, 49, 1_000],
    ['tokens', MINUTE, 38_000, 37_000, 2_000],
    ['input_tokens', MINUTE, 30_000, 30_000, 0],
    ['output_tokens', MINUTE, 8_000, 7_000, 7_000],
  ],
  azure: [
    {
      'x-ratelimit-limit-requests': '-1',
      'x-ratelimit-remaining-requests': '-1',
      'x-ratelimit-reset-requests': '0',
      'x-ratelimit-limit-tokens': '50000',
      'x-ratelimit-remaining-tokens': '49000',
      'x-ratelimit-reset-tokens': '12',
    },
    ['tokens', MINUTE, 50_000, 49_000, 12_000],
  ],
  cerebras: [
    {
      'x-ratelimit-limit-requests-day': '14400',
      'x-ratelimit-remaining-requests-day': '14399',
      'x-ratelimit-reset-requests-day': '33011.382867',
      'x-ratelimit-limit-requests-minute': '30',
      'x-ratelimit-remaining-requests-minute': '29',
      'x-ratelimit-reset-requests-minute': '11.38',
      'x-ratelimit-limit-requests-hour': '900',
      'x-ratelimit-remaining-requests-hour': '899',
      'x-ratelimit-reset-requests-hour': '611',
      'x-ratelimit-limit-tokens-minute': '30000',
      'x-ratelimit-remaining-tokens-minute': '29000',
      'x-ratelimit-reset-tokens-minute': '45.5',
    },
    ['requests', MINUTE, 30, 29, 11_380],
    ['requests', HOUR, 900, 899, 611_000],
    ['requests', DAY, 14_400, 14_399, 33_011_383],
    ['tokens', MINUTE, 30_000, 29_000, 45_500],
  ],
  digitalocean: [
    {
      'x-ratelimit-limit-requests': '120',
      'x-ratelimit-remaining-requests': '119',
      'x-ratelimit-reset-requests': '1791288030',
      'x-ratelimit-remaining-tokens-per-minute': '900',
      'x-ratelimit-remaining-tokens-per-day': '9000',
      'x-ratelimit-reset-tokens-per-day': '1791374400',
    },
    ['requests', MINUTE, 120, 119, 30_000],
    ['tokens', MINUTE, null, 900, null],
    ['tokens', DAY, null, 9_000, DAY],
  ],
  fireworks: [
    {
      'x-ratelimit-limit-tokens-prompt': '3600000',
      'x-ratelimit-remaining-tokens-prompt': '3599000',
      'x-ratelimit-limit-tokens-cache-adjusted-prompt': '900000',
      'x-ratelimit-remaining-tokens-cache-adjusted-prompt': '899000',
      'x-ratelimit-limit-tokens-generated': '36000',
      'x-ratelimit-remaining-tokens-generated': '35000',
      'x-ratelimit-over-limit': 'yes',
    },
    ['input_tokens', MINUTE, 3_600_000, 3_599_000, null],
    ['input_tokens', MINUTE, 900_000, 899_000, null],
    ['output_tokens', MINUTE, 36_000, 35_000, null],
  ],
  groq: [
    {
      'x-ratelimit-limit-requests': '14400',
      'x-ratelimit-remaining-requests': '14370',
      'x-ratelimit-reset-requests': '2m59.56s',
      'x-ratelimit-limit-tokens': '18000',
      'x-ratelimit-remaining-tokens': '17997',
      'x-ratelimit-reset-tokens': '577.5ms',
    },
    ['requests', DAY, 14_400, 14_370, 179_560],
    ['tokens', MINUTE, 18_000, 17_997, 578],
  ],
  mistral: [
    {
      'x-ratelimit-limit-req-minute': '60',
      'x-ratelimit-remaining-req-minute': '59',
      'x-ratelimit-limit-tokens-minute': '500000',
      'x-ratelimit-remaining-tokens-minute': '499000',
      'x-ratelimit-limit-tokens-month': '1000000000',
      'x-ratelimit-remaining-tokens-month': '999000000',
      'x-ratelimit-tokens-query-cost': '1000',
    },
    ['requests', MINUTE, 60, 59, null],
    ['tokens', MINUTE, 500_000, 499_000, null],
    ['tokens', 30 * DAY, 1e9, 999_000_000, null],
  ],
  openrouter: [
    {
      'x-ratelimit-limit': '20',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1791288021000',
    },
    ['requests', null, 20, 0, 21_000],
  ],
  sambanova: [
    {
      'x-ratelimit-limit-requests': '30',
      'x-ratelimit-remaining-requests': '29',
      'x-ratelimit-reset-requests': '13',
      'x-ratelimit-limit-requests-day': '1000',
      'x-ratelimit-remaining-requests-day': '999',
      'x-ratelimit-reset-requests-day': '4h17m',
    },
    ['requests', MINUTE, 30, 29, 13_000],
    ['requests', DAY, 1_000, 999, 15_420_000],
  ],
  together: [
    {
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '9',
      'x-ratelimit-reset': '1',
      'x-tokenlimit-limit': '3000',
      'x-tokenlimit-remaining': '2000',
    },
    ['requests', 1_000, 10, 9, 1_000],
    ['tokens', 1_000, 3_000, 2_000, null],
  ],
};

export const SEEN: RecordedProvider = { headers: HEADERS };
