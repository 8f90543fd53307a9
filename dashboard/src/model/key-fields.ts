import type { FieldSection } from './field-words.ts';

/** All editable fields of a gateway key, with labels. A test compares them with the schema. */
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
    title: 'Permissions',
    help: '',
    fields: {
      groups: 'Groups',
      allow: 'Also allowed',
      lane_default: 'Default lane',
      lane_max: 'Highest lane',
      timeout_ms: 'Time-out',
      weight: 'Weight',
    },
  },
  {
    id: 'limits',
    title: 'Key limits',
    help: 'They apply to all calls of the key, in addition to the limits of the groups.',
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

export const ADMIN_KEY_FIELDS: Readonly<Record<string, string>> = {
  id: 'Id',
  role: 'Role',
  expires_at: 'Expires',
};
