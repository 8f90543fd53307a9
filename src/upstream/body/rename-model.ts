import { createJsonModelScan } from './json-model-scan.ts';
import type { ScanState } from './model-scan.ts';

const encoder = new TextEncoder();

function scanned(body: Uint8Array): ScanState {
  const scan = createJsonModelScan();
  const pushed = scan.push(body);
  return pushed.kind === 'more' ? scan.end() : pushed;
}

/** Returns a JSON body with another model name, otherwise byte for byte the same. Returns null if it names no model. */
export function renameModel(body: Uint8Array, model: string): Uint8Array | null {
  const state = scanned(body);
  if (state.kind !== 'found') return null;
  // The name is inserted between the existing quotes.
  const name = encoder.encode(JSON.stringify(model).slice(1, -1));
  const renamed = new Uint8Array(body.length - (state.end - state.start) + name.length);
  renamed.set(body.subarray(0, state.start));
  renamed.set(name, state.start);
  renamed.set(body.subarray(state.end), state.start + name.length);
  return renamed;
}
