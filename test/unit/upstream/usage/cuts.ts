import fc from 'fast-check';

/** Ways to cut so many bytes into pieces: borders, in order. */
export function cutsOf(length: number): fc.Arbitrary<number[]> {
  return fc
    .array(fc.nat({ max: length }), { maxLength: 12 })
    .map((cuts) => cuts.toSorted((a, b) => a - b));
}

/** The pieces between the borders, each in memory of its own. */
export function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const borders = [0, ...cuts, bytes.length];
  return borders.slice(1).map((end, index) => bytes.slice(borders[index], end));
}
