/** Regions that an object can be created in, as hints: Cloudflare's location hints. */
export const LOCATIONS = [
  'wnam',
  'enam',
  'sam',
  'weur',
  'eeur',
  'apac',
  'apac-ne',
  'apac-se',
  'oc',
  'afr',
  'me',
] as const;

/** Jurisdictions that an object can be kept in. */
export const JURISDICTIONS = ['eu', 'fedramp', 'us'] as const;
