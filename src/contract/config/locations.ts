/** Location hints of Cloudflare for the creation of an object. */
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

/** Jurisdictions in which Cloudflare can keep an object. */
export const JURISDICTIONS = ['eu', 'fedramp', 'us'] as const;
