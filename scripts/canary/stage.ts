import { Agent as HttpAgent, type Agent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { AdminClient } from '../../src/admin/client.ts';
import type { GroupStatus } from '../../src/contract/group-status.ts';
import { openCall, type CanaryCallEnd, type CallOptions, type OpenCall } from './call.ts';
import { bodyOf, canaryGroup, statusOf, type CanaryGroup } from './groups.ts';
import type { CanaryPace } from './pace.ts';
import type { SentRequests } from './sent.ts';
import { until } from './wait.ts';
import type { CanaryTarget } from './target.ts';
import { credentials, CheckNotPossible, type CallShape, type UpstreamUse } from './upstream-use.ts';

interface Extra {
  /** Value of `headgate-max-wait`. @default 0, which means no wait */
  readonly maxWaitMs?: number;
  readonly stream?: boolean;
  /** Minimum size of the body. */
  readonly bodyBytes?: number;
  readonly isKeptOpen?: boolean;
  readonly patienceMs?: number;
  readonly onEnd?: (end: CanaryCallEnd) => void;
}

export interface CanaryStage {
  readonly target: CanaryTarget;
  readonly pace: CanaryPace;
  readonly admin: AdminClient;
  readonly sent: SentRequests;
  /** null if no upstream was selected. */
  readonly upstream: UpstreamUse | null;
  readonly signal: AbortSignal;
  say(line: string): void;
  /** Resolves when the operator confirms the deploy or the time is up. */
  deployed(withinMs: number): Promise<void>;
  /** Keeps connections open for the next call. */
  readonly agent: Agent;
  group(label: string): CanaryGroup;
  status(group: CanaryGroup): Promise<GroupStatus>;
  /** Describes a call to a group that grants nothing. */
  closedCall(group: CanaryGroup, extra?: Extra): CallOptions;
  /** Sends a call to a group that grants nothing. */
  send(group: CanaryGroup, extra?: Extra): OpenCall;
  upstreamCall(shape: CallShape): CallOptions;
  sendUpstream(shape: CallShape, patienceMs?: number): OpenCall;
  readonly upstreamGroup: CanaryGroup;
  setUpstreamSlots(slots: number): Promise<void>;
}

export const UPSTREAM_LABEL = 'upstream';

export interface CanaryStageOptions {
  readonly run: string;
  readonly target: CanaryTarget;
  readonly pace: CanaryPace;
  readonly admin: AdminClient;
  readonly sent: SentRequests;
  readonly upstream: UpstreamUse | null;
  /** Path of chat calls at any upstream. Calls of closed groups never reach it. */
  readonly closedPath: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  readonly deployed: (withinMs: number) => Promise<void>;
}

export interface OpenStage extends CanaryStage {
  /** Closes calls that a check has left open. */
  closeCalls(): void;
  close(): void;
}

/** How long an idle connection is kept. workerd closes it after 5 s or more, which could collide with the next call. */
const IDLE_MS = 3_000;

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
    if (upstream === null) throw new CheckNotPossible('No upstream was selected. Use --upstream.');
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
      const answer = await admin('PATCH /groups/{name}', {
        params: { name: upstreamGroup.name },
        body,
      });
      bodyOf('Changing the group of the upstream', answer);
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

/** An invalid provider key. Calls with it never reach a provider. */
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
