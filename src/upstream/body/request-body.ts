import type { ErrorReply } from '../../contract/reasons.ts';
import type { BodyBudget } from './body-budget.ts';
import { bodyForm, certainForm, type BodyForm } from './content-type.ts';
import { scanEncoded, type BodyScan } from './encoded-scan.ts';
import { isForm, KeyedScan, keyScanFor, type KeyFound } from './form-keys.ts';
import { createJsonModelScan, createJsonStreamScan } from './json-model-scan.ts';
import { unreadable } from './model-scan.ts';
import type { Depth, ModelScan, ScanState } from './model-scan.ts';
import { createMultipartModelScan } from './multipart-scan.ts';
import { contentLengthOf, unreadBody } from './outgoing-body.ts';
import type { OutgoingBody } from './outgoing-body.ts';
import { BodyReading, WholeReading } from './reading.ts';
import { BodyWatch } from './pump.ts';
import type { AbortSource } from '../../runtime/async.ts';

export { unreadBody };
export type { OutgoingBody };

/** Conditions under which the model found in a body is the one that the upstream will read. */
export interface BodyProof {
  /**
   * Whether something depends on the model. Then an unreadable body is rejected, and the body is held until its model
   * is known.
   */
  readonly isBound: boolean;
  /** Whether a body may name its model only by reference, so that the call's header counts. */
  allowsReferences(): boolean;
  /** Returns an error if the call names another model elsewhere, or null. */
  against(model: string): ErrorReply | null;
}

export interface BodySearch {
  /** If false, a body is only searched for gateway keys. */
  readonly wantsModel: boolean;
  readonly wantsStream: boolean;
  /** null if the first model is enough. */
  readonly proof: BodyProof | null;
  /** Defaults to `first` without `proof`, otherwise to `thorough`. */
  readonly depth?: Depth;
  /** The gateway key of the call, which need not look like one. No form field may contain a gateway key. */
  readonly ownKey: string | null;
}

const FIRST_MODEL: BodySearch = { wantsModel: true, wantsStream: false, proof: null, ownKey: null };

/** Whether a body is always read, because a form field may contain a gateway key. */
export function mayHoldKeys({ method, headers }: Request): boolean {
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return hasBody && isForm(headers.get('content-type') ?? '');
}

/** The result of the search for a model. For `unreadable` and `aborted`, no body is left. */
export type ModelRead =
  | {
      readonly kind: 'found';
      readonly model: string;
      /** Whether the body requests a stream, if the search includes that. */
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  /** `hidden`: the body may have a model that was not found, but nothing depends on it. */
  | {
      readonly kind: 'absent' | 'hidden';
      readonly model: null;
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  /** `message` is a full sentence for the caller. */
  | { readonly kind: 'unreadable'; readonly message: string }
  /** No memory became free in time. */
  | { readonly kind: 'crowded' }
  /** The signal aborted, or the client's connection broke. */
  | { readonly kind: 'aborted' };

/** Maximum length of a body that is read at once, the cheapest way for the many small ones. */
const WHOLE_BYTES_MAX = 32 * 1024;

export interface ReadingRoom {
  readonly budget: BodyBudget;
  /** How long the body may wait to be read. The reading itself is only limited by the signal. */
  readonly maxWaitMs: number;
  readonly signal: AbortSource;
}

/**
 * Finds the model in a request's body. It reads no further than necessary, and the unread rest stays with the client. A
 * small body of known length is read completely if there is free memory. Beyond its head, a body waits for memory in
 * order of arrival. If the model must be proven, the unread rest is scanned while it is sent.
 */
export async function readModel(
  request: Request,
  { budget, maxWaitMs, signal }: ReadingRoom,
  search: BodySearch = FIRST_MODEL,
): Promise<ModelRead> {
  if (request.body === null) {
    return { kind: 'absent', model: null, isStream: false, body: unreadBody(request) };
  }
  const scans = scansFor(request, search);
  if ('why' in scans) return hidden(request, scans.why, search);
  const { scan, modelScan, isJson } = scans;

  const length = contentLengthOf(request);
  const whole = length !== null && length <= WHOLE_BYTES_MAX ? budget.tryTake(length) : null;
  const reading =
    whole !== null
      ? new WholeReading(request, signal, whole)
      : new BodyReading(request.body, length, budget, maxWaitMs, signal, goesUnfound(search));
  const watch = new BodyWatch(scan, (state) => faultIn(state, search));
  let state: ScanState | 'aborted' | 'crowded' = 'aborted';
  let isWatched = false;
  try {
    state = await reading.run(scan);
    if (state === 'aborted' || state === 'crowded') return { kind: state };
    const refusal = refusalOf(state, search);
    if (refusal !== null) {
      state = 'aborted';
      return { kind: 'unreadable', message: refusal };
    }
    isWatched = scans.isWatched && !reading.isWhole && scan.goesOn;
    const { isStream } = modelScan;
    const parts = { model: null, watch: isWatched ? watch : null };
    if (state.kind !== 'found') {
      const kind = state.kind === 'absent' || isAllowed(state, search) ? 'absent' : 'hidden';
      return { kind, model: null, isStream, body: reading.body(parts) };
    }
    const { start, end, model } = state;
    const place = scan.isPlain ? { start, end, isJson } : null;
    return { kind: 'found', model, isStream, body: reading.body({ ...parts, model: place }) };
  } finally {
    if (!isWatched) scan.close();
    if (state === 'aborted' || state === 'crowded') reading.giveUp();
  }
}

/** Finds the model in the bytes of a whole body. Returns null if there is none, or the body cannot be read. */
export async function modelIn(
  bytes: Uint8Array,
  { url, headers, signal }: Request,
  budget: BodyBudget,
): Promise<string | null> {
  const copy = new Request(url, { method: 'POST', headers, body: bytes });
  const read = await readModel(copy, { budget, maxWaitMs: Infinity, signal });
  if ('body' in read) read.body.discard();
  return read.kind === 'found' ? read.model : null;
}

interface Scans {
  readonly scan: BodyScan;
  readonly modelScan: ModelScan;
  readonly isJson: boolean;
  /** Whether the rest of a body is scanned while it is sent. */
  readonly isWatched: boolean;
}

/** Determines how a body is scanned. `why` is the reason if it is not. */
function scansFor({ headers }: Request, search: BodySearch): Scans | { readonly why: string } {
  const { wantsModel, wantsStream, proof, ownKey } = search;
  const { depth = proof === null ? 'first' : 'thorough' } = search;
  const contentType = headers.get('content-type') ?? '';
  const form = proof === null ? bodyForm(contentType) : certainForm(contentType);
  const keys = keyScanFor(contentType, ownKey);
  const isRefused =
    form.kind === 'hidden' && wantsModel && refusalOf(unreadable(form.why), search) !== null;
  if (form.kind === 'hidden' && (isRefused || keys === null)) return { why: form.why };
  const ofModel = form.kind === 'hidden' || !wantsModel ? null : scanFor(form, wantsStream, depth);
  const modelScan = keys === null ? ofModel : new KeyedScan(ofModel, keys);
  if (modelScan === null) return { why: 'the search is empty' };
  const scan = scanEncoded(modelScan, headers.get('content-encoding'));
  if (scan === null) return { why: UNKNOWN_PACKING };
  const isJson = form.kind === 'json';
  return { scan, modelScan, isJson, isWatched: proof !== null || keys !== null };
}

const UNKNOWN_PACKING =
  'its content-encoding is not gzip, deflate, br or zstd, or more than three of these';

/** If nothing depends on the model, the body is not held until its model is known. */
function goesUnfound({ wantsModel, proof, wantsStream }: BodySearch): boolean {
  return !wantsModel || (proof !== null && !proof.isBound && !wantsStream);
}

function scanFor(
  form: Exclude<BodyForm, { kind: 'hidden' }>,
  wantsStream: boolean,
  depth: Depth,
): ModelScan {
  if (form.kind === 'form') return createMultipartModelScan(form.boundary, depth, form.stem);
  return wantsStream ? createJsonStreamScan(depth) : createJsonModelScan(depth);
}

function hidden(request: Request, why: string, search: BodySearch): ModelRead {
  const isPackedForm = why === UNKNOWN_PACKING && mayHoldKeys(request);
  const message = isPackedForm
    ? `The form could not be checked for gateway keys: ${why}. Send it without a content-encoding.`
    : search.wantsModel
      ? refusalOf(unreadable(why), search)
      : null;
  if (message === null) {
    return { kind: 'hidden', model: null, isStream: false, body: unreadBody(request) };
  }
  request.body?.cancel().catch(ignore);
  return { kind: 'unreadable', message };
}

/** The message for the caller if the body is not forwarded. null if it is. */
function refusalOf(state: ScanState, { wantsModel, proof }: BodySearch): string | null {
  if (state.kind === 'key') return keyRefusal(state);
  if (state.kind === 'twice') {
    return 'The body names its model twice, and parsers differ in which one they use. Name it once.';
  }
  if (state.kind !== 'unreadable' || proof?.isBound === false) return null;
  if (isAllowed(state, { proof })) return null;
  if (!wantsModel) {
    return `The form could not be checked for gateway keys: ${state.why}. Correct the body, and send it again.`;
  }
  if (state.reference !== undefined && proof !== null) {
    return `The body names its model by reference, in \`${state.reference}\`. A group or the key of this call depends on the model, which Headgate cannot look up. Add \`model\` to the body, or ask the operator to set \`match.references: allow\` in the group.`;
  }
  const help =
    proof === null
      ? 'Name it in the `headgate-model` header.'
      : 'A group of this call depends on it, so a header cannot replace it. Send the body as JSON in UTF-8, or as a form.';
  return `The model could not be read from the body: ${state.why}. ${help}`;
}

/** Whether a body names its model by reference and is allowed to. */
function isAllowed(state: ScanState, { proof }: Pick<BodySearch, 'proof'>): boolean {
  const isReference = state.kind === 'unreadable' && state.reference !== undefined;
  return isReference && proof?.allowsReferences() === true;
}

function keyRefusal({ field, isMethod }: KeyFound): string {
  if (isMethod === true) {
    return `The field ${JSON.stringify(field)} of the form names another method, which some servers use instead of the request's own. Remove the field, and send the request with that method.`;
  }
  const what =
    field === null
      ? 'A field of the form has a name that is'
      : `The field ${JSON.stringify(field.slice(0, 100))} of the form contains`;
  return `${what} a gateway key, which must not reach an upstream. Remove it, and send the key in the \`headgate-key\` header.`;
}

function faultIn(state: ScanState, search: BodySearch): ErrorReply | null {
  const { proof } = search;
  if (state.kind === 'found') return proof?.against(state.model) ?? null;
  // If the model need not be proven, an unreadable model does not abort the body.
  const message = proof === null && state.kind !== 'key' ? null : refusalOf(state, search);
  return message === null ? null : { reason: 'body_unreadable', message };
}

/** Stops checking the model of a body. Only keys in its fields still abort it. */
export function unprove({ watch }: OutgoingBody): void {
  watch?.lookFor((state) => (state.kind === 'key' ? faultIn(state, FIRST_MODEL) : null));
}

function ignore(): void {
  // The body is discarded, so a failure does not matter.
}
