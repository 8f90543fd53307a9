import type { FieldSection } from './field-words.ts';

/** Every field of a caller's key that people set, with its label. A test holds it against the schema. */
export const KEY_SECTIONS: readonly FieldSection[] = [
  {
    id: 'key',
    title: 'Key',
    help: '',
    fields: {
      id: 'Id',
      note: 'Note',
      team: 'Team',
      expires_at: 'Expires',
    },
  },
  {
    id: 'rights',
    title: 'What it may do',
    help: '',
    fields: {
      groups: 'Groups',
      allow: 'Also open',
      lane_default: 'Default lane',
      lane_max: 'Best lane',
      timeout_ms: 'Time-out',
      weight: 'Weight',
    },
  },
  {
    id: 'limits',
    title: 'Limits of its own',
    help: 'Over everything that it calls, on top of the limits of the groups.',
    fields: {
      'limits.max_concurrency': 'Max concurrency',
      'limits.rpm': 'Requests per minute',
      'limits.tpm': 'Tokens per minute',
      'limits.rpd': 'Requests per day',
      'limits.tpd': 'Tokens per day',
      'limits.budget_usd.per_hour': 'Budget per hour',
      'limits.budget_usd.per_day': 'Budget per day',
      'limits.budget_usd.per_month': 'Budget per month',
      'limits.budget_usd.fallback_price': 'Fallback price',
    },
  },
];

/** Labels of an admin key's fields, by path. */
export const ADMIN_KEY_FIELDS: Readonly<Record<string, string>> = {
  id: 'Id',
  role: 'Role',
  expires_at: 'Expires',
};
