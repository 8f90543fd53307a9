/** Number of `--tenant-…` colours in `style/tokens.css`. */
const TONES = 8;

export function tintOf(tenant: string): Readonly<Record<'--tone', string>> {
  return { '--tone': `var(--tenant-${toneOf(tenant)})` };
}

/** Colour number of a tenant: an FNV-1a hash, so it is the same on every page and machine. */
export function toneOf(tenant: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < tenant.length; i += 1) {
    hash = Math.imul(hash ^ tenant.charCodeAt(i), 0x01000193);
  }
  // The low bits of FNV-1a depend only on the low bits of the text, so the high bits are mixed in.
  return ((hash ^ (hash >>> 15)) >>> 0) % TONES;
}
