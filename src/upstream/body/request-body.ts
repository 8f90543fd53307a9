import type { ErrorReply } from '../../contract/reasons.ts';
import type { BodyBudget } from './body-budget.ts';
import { bodyForm, certainForm, type BodyForm } from './content-type.ts';
import { scanEncoded } from './encoded-scan.ts';
import type { BodyScan } from './encoded-scan.ts';
import type { KeyFound } from './form-keys.ts';
import { isForm, KeyedScan, keyScanFor } from './keyed-scan.ts';
import { createJsonModelScan, createJsonStreamScan } from './json-model-scan.ts';
import { unreadable } from './model-scan.ts';
import type { Depth, ModelScan, ScanState } from './model-scan.ts';
import { createMultipartModelScan } from './multipart-scan.ts';
import { contentLengthOf, unreadBody } from './outgoing-body.ts';
import type { OutgoingBody } from './outgoing-body.ts';
import { BodyReading, WholeReading } from './reading.ts';
import { BodyWatch } from './watch.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

export { unreadBody };
export type { OutgoingBody };

/** Conditions on a body whose model counts as the one that the upstream will read. */
export interface BodyProof {
  /** Something goes by the model: a body that cannot be read is refused, and held until its model is known. */
  readonly isBound: boolean;
  /** Whether a body may name its model only by reference, so that the call's header counts. */
  allowsReferences(): boolean;
  /** Finds what the call says elsewhere against the model that its body names; null: nothing. */
  against(model: string): ErrorReply | null;
}

/** The things that are looked for in a body. */
export interface BodySearch {
  /** Otherwise a body is looked through for gateway keys alone. */
  readonly wantsModel: boolean;
  /** Whether `stream` is to be found too. */
  readonly wantsStream: boolean;
  /** Null: the first model will do. */
  readonly proof: BodyProof | null;
  /** Defaults to `first` without `proof`, otherwise to `thorough`. */
  readonly depth?: Depth;
  /** The gateway key of the call. No field of a form may hold one, and this one need not look like it. */
  readonly ownKey: string | null;
}

const FIRST_MODEL: BodySearch = { wantsModel: true, wantsStream: false, proof: null, ownKey: null };

/** Whether a body is read whatever is looked for: a gateway key may stand in a field of a form. */
export function mayHoldKeys({ method, headers }: Request): boolean {
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return hasBody && isForm(headers.get('content-type') ?? '');
}

/** The end of the search for a model. Of `unreadable` and `aborted` no body is left. */
export type ModelRead =
  | {
      readonly kind: 'found';
      readonly model: string;
      /** Whether the body asks for a stream, if that was looked for. */
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  /** `hidden`: it may have a model that was not found, which nothing goes by. */
  | {
      readonly kind: 'absent' | 'hidden';
      readonly model: null;
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  /** `message` is a full sentence for the caller. */
  | { readonly kind: 'unreadable'; readonly message: string }
  /** There was no room for it in time. */
  | { readonly kind: 'crowded' }
  /** The signal came first, or the client's connection broke. */
  | { readonly kind: 'aborted' };

/**
 * Maximum length of a body that is read in one go, which is the cheapest way for the many small ones.
 */
const WHOLE_BYTES_MAX = 32 * 1024;

/** How long a body may take, and whose room it takes. */
export interface ReadingRoom {
  readonly budget: BodyBudget;
  /** How long it may wait to be read. What is being read may take until the signal. */
  readonly maxWaitMs: number;
  readonly signal: AbortSource;
}

/**
 * Finds the model in a request's body. It reads no further than it must, except that a small body
 * of known length is read whole where that is free; what is unread stays with the client. Beyond its head a body
 * waits for room, in order of arrival. Where the model is to be proven, what is unread is
 * watched on its way out.
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

/** Finds the model in the bytes of a whole body. null if there is none, or the body cannot be read. */
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
  /** Whether what is left of a body is looked at on its way out. */
  readonly isWatched: boolean;
}

/** How a body is scanned. `why` nothing is found in it. */
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
  if (modelScan === null) return { why: 'nothing is looked for' };
  const scan = scanEncoded(modelScan, headers.get('content-encoding'));
  if (scan === null) return { why: UNKNOWN_PACKING };
  const isJson = form.kind === 'json';
  return { scan, modelScan, isJson, isWatched: proof !== null || keys !== null };
}

const UNKNOWN_PACKING =
  'its content-encoding is not gzip, deflate, br or zstd, or more than three of these';

/** A body that nothing goes by is not held until its model is known. */
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

/** A body that cannot be read at all. */
function hidden(request: Request, why: string, search: BodySearch): ModelRead {
  const isPackedForm = why === UNKNOWN_PACKING && mayHoldKeys(request);
  const message = isPackedForm
    ? `The form could not be looked through for gateway keys: ${why}. Send it without one.`
    : search.wantsModel
      ? refusalOf(unreadable(why), search)
      : null;
  if (message === null) {
    return { kind: 'hidden', model: null, isStream: false, body: unreadBody(request) };
  }
  request.body?.cancel().catch(ignore);
  return { kind: 'unreadable', message };
}

/** The sentence for the caller of a body that is not passed on; null: it is. */
function refusalOf(state: ScanState, { wantsModel, proof }: BodySearch): string | null {
  if (state.kind === 'key') return keyRefusal(state);
  if (state.kind === 'twice') {
    return 'The body names its model twice, and not every parser takes the same of two. Send it once.';
  }
  if (state.kind !== 'unreadable' || proof?.isBound === false) return null;
  if (isAllowed(state, { proof })) return null;
  if (!wantsModel) return `The form could not be looked through for gateway keys: ${state.why}.`;
  if (state.reference !== undefined && proof !== null) {
    return `The body names its model by reference, in ${state.reference}, and a group or the key of this call depends on the model, which Headgate cannot look up. Add model to the body, or ask the operator to set match.references: allow in the group.`;
  }
  const help =
    proof === null
      ? 'The header headgate-model can name it.'
      : 'A group of this call goes by it, so that no header stands for it: send it as JSON in UTF-8, or as a form.';
  return `The model could not be read from the body: ${state.why}. ${help}`;
}

/** Whether a body names its model by reference and is allowed to. */
function isAllowed(state: ScanState, { proof }: Pick<BodySearch, 'proof'>): boolean {
  const isReference = state.kind === 'unreadable' && state.reference !== undefined;
  return isReference && proof?.allowsReferences() === true;
}

function keyRefusal({ field, isMethod }: KeyFound): string {
  if (isMethod === true) {
    return `The field ${JSON.stringify(field)} of the form names another method, by which some servers go instead of the request's own. Remove it, and send the request by that method.`;
  }
  const what =
    field === null
      ? 'A field of the form has a name that is'
      : `The field ${JSON.stringify(field.slice(0, 100))} of the form holds`;
  return `${what} a gateway key, which no upstream may see. Leave it out, and send the key in the header headgate-key.`;
}

/** Why a body is broken off that is on its way out. */
function faultIn(state: ScanState, search: BodySearch): ErrorReply | null {
  const { proof } = search;
  if (state.kind === 'found') return proof?.against(state.model) ?? null;
  // What nobody must be able to read, nobody breaks off for that.
  const message = proof === null && state.kind !== 'key' ? null : refusalOf(state, search);
  return message === null ? null : { reason: 'body_unreadable', message };
}

/** The body whose model no longer counts: only keys in its fields still break it off. */
export function unprove({ watch }: OutgoingBody): void {
  watch?.lookFor((state) => (state.kind === 'key' ? faultIn(state, FIRST_MODEL) : null));
}

function ignore(): void {
  // The body is given up; how that went concerns nobody.
}
