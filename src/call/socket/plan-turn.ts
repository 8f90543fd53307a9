import type { ErrorReply } from '../../contract/reasons.ts';
import { createJsonModelScan } from '../../upstream/body/json-model-scan.ts';
import { keptBytes } from '../../upstream/body/kept-body.ts';
import { referenceInPath } from '../../upstream/operation/operation.ts';
import {
  bytesOf,
  readFrameModels,
  type Frame,
  type CreateMessage,
} from '../../upstream/socket/messages.ts';
import { CallBody, bodyBudget } from '../request/body.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';
import { modelRule, referredPath } from '../request/find-model.ts';
import { placeOf } from '../answer/sending.ts';
import { atMember, planAt, type Candidate } from '../plan/plan.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { nextCandidate, planSpill } from '../drive/spill.ts';

/** One request for a response on a connection, as a call whose body is its message. */
export interface TurnRequest extends Pick<
  CreateMessage,
  'model' | 'streamId' | 'previousId' | 'isAppend'
> {
  readonly body: CallBody;
  readonly isText: boolean;
}

export function turnRequest(message: CreateMessage): TurnRequest {
  const { frame, model, streamId, previousId, isAppend } = message;
  const bytes = bytesOf(frame);
  const body = new CallBody();
  // The message is in memory in any case, so a queued turn takes room from others.
  body.hold(keptBytes(bytes, bodyBudget.count(bytes.length)));
  return { model, streamId, previousId, isAppend, body, isText: typeof frame === 'string' };
}

/** The message of a turn in its current form. null if its memory was released. */
export function frameOf({ body, isText }: Pick<TurnRequest, 'body' | 'isText'>): Frame | null {
  const { bytes } = body;
  if (bytes === null) return null;
  return isText ? new TextDecoder().decode(bytes) : new Uint8Array(bytes).buffer;
}

/** Writes the model of a turn as its member calls it. Returns false if that is not possible. */
export function fitTurn({ member }: Candidate, { body, isAppend }: TurnRequest): boolean {
  if (member === null) return true;
  body.restore();
  const { bodyModel } = member;
  // A message that only continues a response names no model.
  return bodyModel === null || body.rename(bodyModel) || isAppend;
}

const UPSTREAM_GONE: ErrorReply = {
  reason: 'upstream_unknown',
  message:
    'The upstream of this connection was removed from the configuration. Connect to another one.',
};

const RESPONSE_GONE: ErrorReply = {
  reason: 'upstream_unknown',
  message:
    'The message continues a response whose upstream or member cannot serve this turn any more. Send the whole conversation instead.',
};

/**
 * Plans a turn by the configuration of `call`.
 *
 * @param located the call that each turn of the connection is
 * @param place the upstream or member that created the response that the turn continues, or null
 */
export async function planTurn(
  call: AuthenticatedCall,
  located: Located,
  turn: TurnRequest,
  place: string | null,
): Promise<Candidate | Rejected> {
  const upstream = call.table.upstreams.get(located.upstream.id);
  if (upstream === undefined) return rejected(UPSTREAM_GONE);
  const { isTrue, isWanted } = modelRule(call, upstream, located.path, located.operation);
  if (isTrue && isWanted) {
    const against = unreadableModel(turn);
    if (against !== null) return rejected(against);
    const stored = turn.model === null ? referenceInPath(located.path) : null;
    if (stored !== null) return rejected(referredPath(stored));
  }
  turn.body.restore();
  const planned = await planAt(call, { ...located, upstream, model: turn.model });
  if (planned.kind === 'rejected' || place === null) return planned;
  return (await boundTo(planned, place)) ?? rejected(RESPONSE_GONE);
}

/** The candidate of a turn that may only go to one place. null if the turn cannot go there. */
async function boundTo(planned: Candidate, place: string): Promise<Candidate | null> {
  const here = onlyAt(planned, place);
  if (here !== null) return here;
  const spill = await planSpill(planned);
  const next = spill.next.map((one) => onlyAt(one, place)).filter((one) => one !== null);
  const there = await nextCandidate({ ...spill, next }, planned);
  return there?.kind === 'next' ? there.candidate : null;
}

/** The same candidate without other members. null if it does not go to the place. */
function onlyAt<Each extends Candidate>(candidate: Each, place: string): Each | null {
  const { members } = candidate;
  if (members === null) return placeOf(candidate) === place ? candidate : null;
  const all = [...members.places.values()];
  const bound = all.find((one) => placeOf(atMember(candidate, one)) === place);
  if (bound === undefined) return null;
  const others = all.filter((one) => one !== bound).map(({ id }) => id);
  const impossible = [...members.impossible, ...others];
  const places = new Map([[bound.id, bound]]);
  return { ...candidate, members: { ...members, places, impossible } };
}

/** Checks the model like that of a request body. null if every upstream reads the same model from the message. */
function unreadableModel({ body, model }: TurnRequest): ErrorReply | null {
  const why = oddModel(body.bytes ?? new Uint8Array(), model);
  if (why === null) return null;
  const message = `The model could not be read from the message: ${why}. A group or the key of this call depends on it. Name the model once, as \`model\`.`;
  return { reason: 'body_unreadable', message };
}

function oddModel(bytes: Uint8Array, model: string | null): string | null {
  const scan = createJsonModelScan('thorough');
  scan.push(bytes);
  const state = scan.end();
  if (state.kind === 'twice') return 'it is named twice';
  if (state.kind === 'unreadable') return state.why;
  // A server with realtime routes may read the model of a `response` or a `session` in the message.
  const models = readFrameModels(new TextDecoder().decode(bytes));
  if (models.kind === 'unreadable') return models.why;
  return models.main.every((one) => one === model) ? null : 'it names several models';
}
