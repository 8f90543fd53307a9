import type { ErrorReply } from '../../contract/reasons.ts';
import { createJsonModelScan } from '../../upstream/body/json-model-scan.ts';
import { keptBytes } from '../../upstream/body/kept-body.ts';
import { referenceInPath } from '../../upstream/operation/operation.ts';
import { bytesOf, type Frame } from '../../upstream/socket/frame.ts';
import { readFrameModels } from '../../upstream/socket/frame-models.ts';
import type { CreateMessage } from '../../upstream/socket/responses-messages.ts';
import { CallBody } from '../body.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { UpstreamKey } from '../identity/authenticate.ts';
import { bodyBudget } from '../isolate.ts';
import type { Located } from '../locate.ts';
import { modelRule, referredPath } from '../model-rule.ts';
import { planAt, type Candidate } from '../plan.ts';
import { rejected, type Rejected } from '../result.ts';
import { isSameRoute } from './may-go-on.ts';

/** One request for a response on a connection, as a call whose body is its message. */
export interface TurnRequest extends Pick<CreateMessage, 'model' | 'streamId'> {
  readonly body: CallBody;
  readonly isText: boolean;
}

export function turnRequest({ frame, model, streamId }: CreateMessage): TurnRequest {
  const bytes = bytesOf(frame);
  const body = new CallBody();
  // The message is in memory in any case, so a queued turn takes room from others.
  body.hold(keptBytes(bytes, bodyBudget.count(bytes.length)));
  return { model, streamId, body, isText: typeof frame === 'string' };
}

/** The message of a turn in its current form. null if its memory was released. */
export function frameOf({ body, isText }: Pick<TurnRequest, 'body' | 'isText'>): Frame | null {
  const { bytes } = body;
  if (bytes === null) return null;
  return isText ? new TextDecoder().decode(bytes) : new Uint8Array(bytes).buffer;
}

/** The connection that its turns use. */
export interface TurnConnection {
  /** Of the call that each turn is. */
  readonly located: Located;
  /** The key with which it was opened. */
  readonly key: UpstreamKey;
}

/** In the configuration in force the turn has another route than its connection, so it needs a new connection. */
export interface TurnMoved {
  readonly kind: 'elsewhere';
}

const ELSEWHERE: TurnMoved = { kind: 'elsewhere' };

/** Plans a turn by the configuration of `call`. */
export async function planTurn(
  call: AuthenticatedCall,
  connection: TurnConnection,
  turn: TurnRequest,
): Promise<Candidate | Rejected | TurnMoved> {
  const { located } = connection;
  const upstream = call.table.upstreams.get(located.upstream.id);
  if (upstream === undefined) return ELSEWHERE;
  const { isTrue, isWanted } = modelRule(call, upstream, located.path, located.operation);
  if (isTrue && isWanted) {
    const against = unreadableModel(turn);
    if (against !== null) return rejected(against);
    const stored = turn.model === null ? referenceInPath(located.path) : null;
    if (stored !== null) return rejected(referredPath(stored));
  }
  const planned = await planAt(call, { ...located, upstream, model: turn.model });
  if (planned.kind === 'rejected') return planned;
  return planned.members === null && isSameRoute(planned, connection) ? planned : ELSEWHERE;
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
