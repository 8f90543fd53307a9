import type { FieldSection, FieldWords } from './field-words.ts';

/** Every field of a caller's key that people set. A test holds it against the schema. */
export const KEY_SECTIONS: readonly FieldSection[] = [
  {
    id: 'key',
    title: 'Key',
    help: '',
    fields: {
      id: {
        label: 'Id',
        help: 'What the key is called everywhere: 1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later.',
      },
      note: { label: 'Note', help: 'For people.' },
      expires_at: {
        label: 'Expires',
        help: 'From then on it opens nothing. Empty: never.',
      },
    },
  },
  {
    id: 'rights',
    title: 'What it may do',
    help: '',
    fields: {
      groups: {
        label: 'Groups',
        help: 'Groups that its calls may use, one per line; * stands for anything. Empty: all.',
      },
      allow: {
        label: 'Also open',
        help: "Operations without a slot that it may use with the operator's keys, one per line: files, batches, responses … Models and the counting of tokens are open anyway.",
      },
      lane_default: {
        label: 'Default lane',
        help: 'Lane of its calls that name none. None: that of the group.',
      },
      lane_max: { label: 'Best lane', help: 'The best lane that its calls may have.' },
      weight: {
        label: 'Weight',
        help: 'Its part of every group that names no weight for it.',
      },
    },
  },
  {
    id: 'limits',
    title: 'Limits of its own',
    help: 'Over everything that it calls, on top of the limits of the groups.',
    fields: {
      'limits.max_concurrency': {
        label: 'Max concurrency',
        help: 'Calls in flight at once. Empty: no limit of its own. 0 grants nothing.',
        unit: 'slots',
      },
      'limits.rpm': { label: 'Requests per minute', help: 'Empty: no limit.', unit: 'requests' },
      'limits.tpm': { label: 'Tokens per minute', help: 'Empty: no limit.', unit: 'tokens' },
      'limits.rpd': {
        label: 'Requests per day',
        help: 'In any 24 hours. Empty: no limit.',
        unit: 'requests',
      },
      'limits.tpd': {
        label: 'Tokens per day',
        help: 'In any 24 hours. Empty: no limit.',
        unit: 'tokens',
      },
      'limits.budget_usd.per_hour': { label: 'Budget per hour', help: 'Empty: none.', unit: 'USD' },
      'limits.budget_usd.per_day': { label: 'Budget per day', help: 'Empty: none.', unit: 'USD' },
      'limits.budget_usd.per_month': {
        label: 'Budget per month',
        help: 'Empty: none.',
        unit: 'USD',
      },
      'limits.budget_usd.fallback_price': {
        label: 'Fallback price',
        help: 'For models without a known price, in USD per million tokens. None: with a budget, such calls are refused.',
      },
    },
  },
];

/** Every field of an admin key that people set, by path. */
export const ADMIN_KEY_FIELDS: Readonly<Record<string, FieldWords>> = {
  id: {
    label: 'Id',
    help: 'Whose it is, as the audit log will say: 1 to 64 of a-z, 0-9, dot, dash, underscore.',
  },
  role: {
    label: 'Role',
    help: 'A viewer looks, an operator handles calls besides, an admin does everything.',
  },
  expires_at: { label: 'Expires', help: 'From then on it opens nothing. Empty: never.' },
};
