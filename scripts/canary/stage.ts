import { Agent as HttpAgent, type Agent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { AdminClient } from '../../src/contract/admin/client.ts';
import type { GroupStatus } from '../../src/contract/admin/status-schemas.ts';
import { openCall, type CanaryCallEnd, type CallOptions, type OpenCall } from './call.ts';
import { bodyOf, canaryGroup, statusOf, type CanaryGroup } from './groups.ts';
import type { CanaryPace } from './pace.ts';
import type { SentRequests } from './sent.ts';
import { until } from './wait.ts';
import type { CanaryTarget } from './target.ts';
import { credentials, CheckNotPossible, type CallShape, type UpstreamUse } from './upstream-use.ts';

/** More of a call than its group. */
interface Extra {
  /** Of `headgate-max-wait`. @default 0: it does not wait */
  readonly maxWaitMs?: number;
  readonly stream?: boolean;
  /** Bytes that the body has at least. */
  readonly bodyBytes?: number;
  /** Keeps its connection for the next call. */
  readonly isKeptOpen?: boolean;
  readonly patienceMs?: number;
  readonly onEnd?: (end: CanaryCallEnd) => void;
}

/** Everything that a check needs of a run. */
export interface CanaryStage {
  readonly target: CanaryTarget;
  readonly pace: CanaryPace;
  readonly admin: AdminClient;
  readonly sent: SentRequests;
  /** Null: there is none, or calls to it may not cost anything. */
  readonly upstream: UpstreamUse | null;
  readonly signal: AbortSignal;
  /** Tells whoever watches how far it is. */
  say(line: string): void;
  /** Resolves when somebody says that the deploy is through, or the time is over. */
  deployed(withinMs: number): Promise<void>;
  /** Keeps connections for the next call. */
  readonly agent: Agent;
  /** A group that the check has asked for. */
  group(label: string): CanaryGroup;
  status(group: CanaryGroup): Promise<GroupStatus>;
  /** Makes a call to a group that grants nothing. */
  closedCall(group: CanaryGroup, extra?: Extra): CallOptions;
  /** Sends such a call. */
  send(group: CanaryGroup, extra?: Extra): OpenCall;
  /** Makes a call that reaches the upstream. */
  upstreamCall(shape: CallShape): CallOptions;
  sendUpstream(shape: CallShape, patienceMs?: number): OpenCall;
  /** The group of calls that reach the upstream. */
  readonly upstreamGroup: CanaryGroup;
  setUpstreamSlots(slots: number): Promise<void>;
}

/** Label of the group of calls that reach an upstream. */
export const UPSTREAM_LABEL = 'upstream';

export interface CanaryStageOptions {
  readonly run: string;
  readonly target: CanaryTarget;
  readonly pace: CanaryPace;
  readonly admin: AdminClient;
  readonly sent: SentRequests;
  readonly upstream: UpstreamUse | null;
  /** Path of chat calls at any upstream: those of closed groups never get there. */
  readonly closedPath: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  readonly deployed: (withinMs: number) => Promise<void>;
}

/** A stage, and the end of everything that it has under way. */
export interface OpenStage extends CanaryStage {
  /** Ends calls that a check has left open. */
  closeCalls(): void;
  close(): void;
}

/** How long a connection is kept that nobody uses: workerd closes it after 5 s or more, which may meet the next call. */
const IDLE_MS = 3_000;

/** Makes the stage of a run. */
export function openStage(options: CanaryStageOptions): OpenStage {
  const { run, target, admin, sent, upstream, closedPath, signal } = options;
  const open = new Set<OpenCall>();
  const AgentOf = target.url.startsWith('https:') ? HttpsAgent : HttpAgent;
  const agent = new AgentOf({ keepAlive: true, timeout: IDLE_MS });
  const upstreamGroup = canaryGroup(run, UPSTREAM_LABEL);
  const start = (what: CallOptions): OpenCall => {
    signal.throwIfAborted();
    sent.calls += 1;
    const onEnd = (end: CanaryCallEnd): void => {
      open.delete(call);
      what.onEnd?.(end);
    };
    const call = openCall({ ...what, onEnd });
    open.add(call);
    return call;
  };
  const closeCalls = (): void => {
    for (const call of open) call.leave('close');
  };
  signal.addEventListener('abort', closeCalls, { once: true });
  const needed = (): UpstreamUse => {
    if (upstream === null) throw new CheckNotPossible('There is no upstream to call.');
    return upstream;
  };
  const closedCall = (group: CanaryGroup, extra: Extra = {}): CallOptions => ({
    url: target.url + closedPath,
    headers: closedHeaders(target, group, extra),
    body: closedBody(group, extra),
    ...(extra.isKeptOpen === true && { agent }),
    ...(extra.patienceMs !== undefined && { patienceMs: extra.patienceMs }),
    ...(extra.onEnd !== undefined && { onEnd: extra.onEnd }),
  });
  const upstreamCall = ({ path, body }: CallShape): CallOptions => ({
    url: target.url + path,
    headers: needed().headers(upstreamGroup),
    body,
  });
  return {
    ...options,
    agent,
    upstreamGroup,
    group: (label) => canaryGroup(run, label),
    status: ({ name }) => statusOf(admin, name),
    closedCall,
    send: (group, extra) => start(closedCall(group, extra)),
    upstreamCall,
    sendUpstream(shape, patienceMs) {
      sent.calls_to_upstream += 1;
      return start({ ...upstreamCall(shape), ...(patienceMs !== undefined && { patienceMs }) });
    },
    async setUpstreamSlots(slots) {
      const body = { limits: { max_concurrency: slots } };
      const answer = await admin('patchGroup', { params: { name: upstreamGroup.name }, body });
      bodyOf('changing the group of the upstream', answer);
      const isSo = async (): Promise<boolean> =>
        (await statusOf(admin, upstreamGroup.name)).limit.configured === slots;
      await until(isSo, { withinMs: options.pace.settleMs, signal });
    },
    closeCalls,
    close() {
      closeCalls();
      agent.destroy();
    },
  };
}

/** A provider's key that is none: calls that carry it are to reach no provider. */
const NO_KEY = 'headgate-canary-no-key';

function closedHeaders(
  target: CanaryTarget,
  { model }: CanaryGroup,
  { maxWaitMs = 0 }: Extra,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...credentials({ ...target, providerKey: NO_KEY }, 'openai'),
    'headgate-model': model,
    'headgate-max-wait': `${maxWaitMs}ms`,
  };
}

function closedBody({ model }: CanaryGroup, { stream = false, bodyBytes = 0 }: Extra): string {
  const content = 'x'.repeat(bodyBytes);
  return JSON.stringify({ model, stream, messages: [{ role: 'user', content }] });
}
