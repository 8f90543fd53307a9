/** There are as many `--tenant-…` colours in `style/tokens.css`. */
const TONES = 8;

/** The colour of what belongs to a tenant, for its style. */
export function tintOf(tenant: string): Readonly<Record<'--tone', string>> {
  return { '--tone': `var(--tenant-${toneOf(tenant)})` };
}

/** The number of a tenant's colour: always the same, on every page and machine (FNV-1a of its name). */
export function toneOf(tenant: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < tenant.length; i += 1) {
    hash = Math.imul(hash ^ tenant.charCodeAt(i), 0x01000193);
  }
  // The low bits of FNV alone depend on the low bits of the text alone.
  return ((hash ^ (hash >>> 15)) >>> 0) % TONES;
}
