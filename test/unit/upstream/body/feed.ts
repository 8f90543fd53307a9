import { createJsonModelScan } from '../../../../src/upstream/body/json-model-scan.ts';
import type { ModelScan, ScanState } from '../../../../src/upstream/body/model-scan.ts';
import { createMultipartModelScan } from '../../../../src/upstream/body/multipart-scan.ts';

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Scans the bytes, cut at the given positions. */
export function scan(model: ModelScan, bytes: Uint8Array, cuts: readonly number[] = []): ScanState {
  const borders = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  for (let index = 1; index < borders.length; index += 1) {
    model.push(bytes.subarray(borders[index - 1], borders[index]));
  }
  return model.end();
}

export const scanJson = (text: string, cuts: readonly number[] = []): ScanState =>
  scan(createJsonModelScan(), encode(text), cuts);

export const scanForm = (
  boundary: string,
  bytes: Uint8Array,
  cuts: readonly number[] = [],
): ScanState => scan(createMultipartModelScan(boundary), bytes, cuts);

/** Every way to cut `length` bytes once, and once into single bytes. */
export function* cutsOf(length: number): Generator<number[]> {
  for (let at = 0; at <= length; at += 1) yield [at];
  yield Array.from({ length }, (_, at) => at);
}

/** The bytes of the model that was found; empty: none was. */
export function rawOf(state: ScanState, bytes: Uint8Array): string {
  if (state.kind !== 'found') return '';
  return new TextDecoder().decode(bytes.subarray(state.start, state.end));
}
