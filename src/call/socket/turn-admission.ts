import { routingTable } from '../../config/snapshots.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { pause } from '../../runtime/background.ts';
import type { Reservation } from '../../upstream/body/body-budget.ts';
import { createJsonModelScan } from '../../upstream/body/json-model-scan.ts';
import { bytesOf, textOf } from '../../upstream/socket/frame.ts';
import { referenceInPath } from '../../upstream/operation/operation.ts';
import { readFrameModels } from '../../upstream/socket/frame-models.ts';
import type { CreateMessage } from '../../upstream/socket/responses-messages.ts';
import { estimateCall } from '../../upstream/usage/estimate.ts';
import type { ServiceTiers } from '../../upstream/usage/tiers.ts';
import { admit, type Admitted } from '../acquire/admit.ts';
import type { Admission, CallTicket } from '../acquire/admission.ts';
import { ReadNames } from '../call-names.ts';
import type { AuthenticatedCall } from '../call.ts';
import { UNCONFIRMED } from '../changed-since.ts';
import { tooManyBytes } from '../many-keys.ts';
import { identify, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../locate.ts';
import { Metering } from '../metering.ts';
import { modelRule, referredPath } from '../model-rule.ts';
import { forbiddenAt, planAt, type Candidate } from '../plan.ts';
import { LEFT, rejected, type CallerLeft, type Rejected } from '../result.ts';
import { isSameRoute } from './may-go-on.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** Maximum reroutes of a turn caused by moving groups before it is refused. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;

interface TurnWait {
  readonly ticket: CallTicket;
  readonly room: Reservation;
  readonly metering: Metering | null;
  readonly names: ReadNames;
}

export interface GrantedTurnSlots {
  readonly kind: 'granted';
  readonly candidate: Candidate;
  readonly admission: Admission;
  readonly metering: Metering | null;
}

interface RefusedTurn extends Rejected {
  /** Present if the key of the whole connection is no longer valid. */
  readonly isOfKey?: true;
}

/** In the configuration in force the turn has another route than its connection, so it needs a new connection. */
interface TurnMoved {
  readonly kind: 'elsewhere';
}

const ELSEWHERE: TurnMoved = { kind: 'elsewhere' };

interface TurnConnection {
  readonly known: AuthenticatedCall;
  /** Of the call that each turn is. */
  readonly located: Located;
  /** The key with which it was opened. */
  readonly key: UpstreamKey;
  /** Aborts when it ends. */
  readonly signal: AbortSource;
}

/** Acquires the slots of a connection's turns, each by the configuration then in force. */
export class TurnAdmission {
  readonly #connection: TurnConnection;

  constructor(connection: TurnConnection) {
    this.#connection = connection;
  }

  /** Waits for the slots of a turn. `room` is the memory for bodies that its message holds. */
  async admit(
    create: CreateMessage,
    ticket: CallTicket,
    room: Reservation,
  ): Promise<GrantedTurnSlots | RefusedTurn | TurnMoved | CallerLeft> {
    let version = 0;
    for (let moves = 0; moves < MOVES_MAX; moves += 1) {
      const candidate = await this.#plan(create, version);
      if (candidate.kind !== 'planned') return candidate;
      const { rules } = candidate;
      const metering = rules.isMetered ? meteringOf(candidate.located, create) : null;
      const names = new ReadNames(create.model, tiersOf(create), candidate.call.request.headers);
      const admitted = await this.#wait(candidate, { ticket, room, metering, names });
      switch (admitted.kind) {
        case 'admitted':
          return { kind: 'granted', candidate, admission: admitted.admission, metering };
        case 'rejected':
          return admitted;
        case 'left':
          return LEFT;
        case 'moved':
          version = admitted.configVersion;
          if (moves > 0) await pause(MOVE_PAUSE_MS, candidate.call.after);
      }
    }
    const message = 'The configuration of the group could not be read. Try again in a moment.';
    return rejected({ reason: 'limiter_unavailable', message });
  }

  /** Waits with the message if there is room for that. A turn that need not wait is served in any case. */
  async #wait(
    { call, routed, placements }: Candidate,
    { ticket, room, metering, names }: TurnWait,
  ): Promise<Admitted> {
    const [narrowest] = placements;
    const pool = narrowest === undefined ? '' : poolName(narrowest.group, narrowest.partition);
    const mayWait = room.rest(pool);
    const { key, keyLanes, keyTimeoutMs } = call.caller;
    const maxWaitMs = mayWait ? ticket.maxWaitMs : 0;
    const admitted = await admit(
      routed,
      { ...ticket, keyLanes, keyTimeoutMs, maxWaitMs },
      placements,
      {
        ...call,
        signal: this.#connection.signal,
        team: key?.team ?? null,
        listener: null,
        metering,
        members: null,
        names,
      },
    );
    room.move();
    const isForRoom = !mayWait && admitted.kind === 'rejected' && admitted.reply.reason === 'busy';
    return isForRoom ? tooManyBytes() : admitted;
  }

  /** Plans a turn by the newest configuration, in which its key may be revoked. */
  async #plan(
    create: CreateMessage,
    version: number,
  ): Promise<Candidate | RefusedTurn | TurnMoved> {
    const { known, located } = this.#connection;
    const { env, ctx, request, query } = known;
    const table = await routingTable(env, ctx, version);
    if (table === null) return rejected(UNCONFIRMED);
    const identified = await identify(table, request.headers, query);
    if (identified.kind === 'rejected') return { ...identified, isOfKey: true };
    const upstream = table.upstreams.get(located.upstream.id);
    if (upstream === undefined) return ELSEWHERE;
    const call = { ...known, table, caller: identified.caller };
    const { isTrue, isWanted } = modelRule(call, upstream, located.path, located.operation);
    if (isTrue && isWanted) {
      const against = unreadableModel(create);
      if (against !== null) return rejected(against);
      const stored = create.model === null ? referenceInPath(located.path) : null;
      if (stored !== null) return rejected(referredPath(stored));
    }
    const planned = await planAt(call, { ...located, upstream, model: create.model });
    if (planned.kind === 'rejected') return planned;
    if (planned.members !== null || !isSameRoute(planned, this.#connection)) return ELSEWHERE;
    const forbidden = forbiddenAt(planned);
    return forbidden === null ? planned : rejected(forbidden);
  }
}

/** Checks the model like that of a request body. null if every upstream reads the same model from the message. */
function unreadableModel({ frame, model }: CreateMessage): ErrorReply | null {
  const why = oddModel(frame, model);
  if (why === null) return null;
  const message = `The model could not be read from the message: ${why}. A group or the key of this call depends on it. Name the model once, as \`model\`.`;
  return { reason: 'body_unreadable', message };
}

function oddModel(frame: CreateMessage['frame'], model: string | null): string | null {
  const scan = createJsonModelScan('thorough');
  scan.push(bytesOf(frame));
  const state = scan.end();
  if (state.kind === 'twice') return 'it is named twice';
  if (state.kind === 'unreadable') return state.why;
  // A server with realtime routes may read the model of a `response` or a `session` in the message.
  const models = readFrameModels(textOf(frame));
  if (models.kind === 'unreadable') return models.why;
  return models.main.every((one) => one === model) ? null : 'it names several models';
}

function meteringOf(located: Located, create: CreateMessage): Metering {
  return new Metering(located, estimateOf(create));
}

function estimateOf({ frame }: CreateMessage): ReturnType<typeof estimateCall> {
  const bytes = bytesOf(frame);
  const facts = { chunks: [bytes], contentLength: bytes.length, contentType: 'application/json' };
  return estimateCall({ ...facts, contentEncoding: null });
}

/** The tiers that a turn requests. Most messages do not contain these words, so they are not parsed. */
function tiersOf(create: CreateMessage): ServiceTiers {
  const text = textOf(create.frame);
  return /tier|speed|latency|\\u/i.test(text) ? estimateOf(create).tiers.asked : {};
}
