import { ticked } from '../config/field-error.ts';
import type { Env } from '../env.ts';
import type { GatewayKeyConfig } from '../contract/config/config.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { kindOfLimits } from '../routing/key-groups.ts';
import { REASONS, type ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { unknownOperation } from '../config/check/upstreams.ts';
import { classify } from '../upstream/operation/operation.ts';
import { cancelsRun } from '../upstream/operation/runs.ts';
import { chooseUpstream, resolveUpstreams } from '../routing/upstreams.ts';
import { hashedPlacements } from '../routing/hashed-partition.ts';
import {
  compileRoutes,
  GROUPS_PER_CALL_MAX,
  type Placement,
  type Routes,
} from '../routing/placement.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { readSecret } from '../runtime/secrets.ts';
import { fingerprint } from '../runtime/digests.ts';
import {
  closedRoute,
  entryAt,
  forbiddenFor,
  refusedKey,
  requiresKey,
} from '../routing/key-access.ts';
import { laneOf } from '../routing/lanes.ts';
import type { AdminApp } from './context.ts';
import { invalid, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

type TestedCall = Parameters<Parameters<typeof serve<'testCall'>>[2]>[0]['body'];

export function addTesterRoutes(app: AdminApp): void {
  serve(app, 'testCall', async ({ context, body: call }) => {
    const errors = call.path === null ? unknownOperation(call.operation, 'operation') : [];
    if (errors.length > 0) throw invalid(errors);
    const snapshot = await currentSnapshot(context.env);
    const upstreams = resolveUpstreams(snapshot.config, BUILT_IN_UPSTREAMS);
    const routes = compileRoutes(snapshot.config, upstreams);
    const chosen = choose(call, upstreams, routes, snapshot.config.default_upstream);
    const body =
      'reason' in chosen
        ? { ...NOTHING, refusal: wire(chosen) }
        : await tested(call, chosen, routes, snapshot, context.env);
    return { status: 200, body: { version: snapshot.version, ...body } };
  });
}

const NOTHING = {
  upstream: null,
  model: null,
  chosen_by: null,
  operation: null,
  takes_slot: null,
  credential: null,
  groups: [],
} as const;

interface ChosenUpstream {
  readonly upstream: Upstream;
  readonly model: string | null;
  readonly by: 'upstream' | 'model' | 'default';
}

function choose(
  { upstream: header, model, shape, key }: TestedCall,
  upstreams: ReadonlyMap<string, Upstream>,
  routes: Routes,
  byDefault: string | null,
): ChosenUpstream | ErrorReply {
  const keyIds = keyIdsOf(key);
  const asked: Parameters<typeof chooseUpstream>[0] = {
    header,
    model,
    shape,
    upstreamOfMember: (named, isServedBy) =>
      routes.upstreamOfMember({ model: named, keyIds, isServedBy }),
  };
  const choice = chooseUpstream(asked, upstreams, byDefault);
  switch (choice.kind) {
    case 'found': {
      const { upstream, prefix } = choice;
      const own = chooseUpstream(asked, upstreams, null);
      const by = header !== null ? 'upstream' : own.kind === 'found' ? 'model' : 'default';
      return { upstream, model: model?.slice(prefix.length) ?? null, by };
    }
    case 'ambiguous':
      return {
        reason: 'model_ambiguous',
        message: `Several upstreams serve this model: ${ticked(choice.upstreams.map(({ id }) => id))}. Name one of them.`,
      };
    case 'unknown':
      return {
        reason: header === null && model !== null ? 'model_unknown' : 'upstream_unknown',
        message: `No upstream was found. Tried: ${choice.tried.join('; ')}.`,
      };
  }
}

async function tested(
  call: TestedCall,
  { upstream, model, by }: ChosenUpstream,
  routes: Routes,
  { config, fingerprintKey }: ConfigSnapshot,
  env: Env,
) {
  const key = config.keys.find(({ id }) => id === call.key) ?? null;
  const secret = upstream.secret === null ? null : readSecret(env, upstream.secret);
  const injected = secret === null ? null : await fingerprint(fingerprintKey, secret);
  const given = key === null ? call.key : null;
  const asked = askedFor(call, upstream, routes);
  const placed = routes.place({
    upstream,
    model,
    ...asked.at,
    caller: call.key ?? 'anonymous',
    keyIds: keyIdsOf(call.key),
    keyFingerprint: upstream.isKeyless ? null : (injected ?? given),
    isOwnKey: injected === null && given !== null,
    // The account can only be determined from the key itself, which the tester does not receive.
    account: null,
    header: (name) => call.headers[name] ?? null,
  });
  const taken = asked.takesSlot ? placed : [];
  const placements = await hashedPlacements(taken, env, fingerprintKey);
  const refusal =
    (key === null
      ? keyRefusal(call, requiresKey(config, upstream), upstream)
      : refusedKey(key, null)) ??
    asked.closedTo(key) ??
    (key === null ? null : forbiddenFor(key, placements)) ??
    tooMany(placements);
  const keyLanes = { byDefault: key?.lane_default ?? null, best: key?.lane_max ?? null };
  return {
    upstream: { id: upstream.id, base_url: upstream.baseUrl, dialect: upstream.dialect },
    model,
    chosen_by: by,
    operation: asked.at.operation,
    takes_slot: asked.takesSlot,
    credential: credentialOf(upstream),
    groups: placements.map((placement) =>
      shown(placement, laneOf({ lane: call.lane, keyLanes }, placement)),
    ),
    refusal: refusal === null ? null : wire(refusal),
  };
}

/** Returns the operation of a call: that of its path, or one that takes a slot. */
function askedFor(call: TestedCall, upstream: Upstream, routes: Routes) {
  const { method, path } = call;
  if (path === null) {
    const at = { operation: call.operation, method, path };
    return { at, takesSlot: true, closedTo: () => null };
  }
  const query = new URLSearchParams();
  const operation = classify(method, path, query, upstream.dialect);
  const at = { operation: operation.name, method, path };
  const named = cancelsRun(path)
    ? 'no'
    : routes.namedPath({ upstream, keyIds: keyIdsOf(call.key), ...at });
  const isNamed = named === 'in all readings';
  const asked = { upstream, path, operation: isNamed ? { isNamed } : {} } as const;
  const entry = entryAt(upstream, upstream.secret, null);
  const request = { method, headers: new Headers() };
  const closedTo = (key: GatewayKeyConfig | null): ErrorReply | null =>
    entry === null ? null : closedRoute(key, asked, { request, query }, entry);
  return { at, takesSlot: operation.limited || named !== 'no', closedTo };
}

function keyIdsOf(key: string | null): string[] {
  return key === null ? [] : [key];
}

function credentialOf({ isKeyless, secret }: Upstream): 'none' | 'caller' | 'operator' {
  if (isKeyless) return 'none';
  return secret === null ? 'caller' : 'operator';
}

function keyRefusal(call: TestedCall, isWanted: boolean, upstream: Upstream): ErrorReply | null {
  if (!isWanted && upstream.secret === null) return null;
  const message =
    call.key === null
      ? 'The call needs a gateway key. Enter the id of one.'
      : `The call needs a gateway key, and \`${call.key}\` is not the id of one.`;
  return { reason: 'key_missing', message };
}

function tooMany(placements: readonly Placement[]): ErrorReply | null {
  if (placements.length <= GROUPS_PER_CALL_MAX) return null;
  const names = ticked(placements.map(({ group }) => group));
  const message = `This call matches ${placements.length} groups (${names}). The maximum is ${GROUPS_PER_CALL_MAX}.`;
  return { reason: 'too_many_groups', message };
}

function shown(placement: Placement, lane: ReturnType<typeof laneOf>) {
  const { group, partition, config, assumed, isOfProvider } = placement;
  const kind = config === null ? 'automatic' : (kindOfLimits(group) ?? 'configured');
  return {
    group,
    kind,
    partition,
    lane,
    is_of_provider: isOfProvider,
    limits: config?.limits ?? null,
    assumed: assumed && { max_concurrency: assumed.slotsMax, source: assumed.source },
  } as const;
}

function wire({ reason, message }: ErrorReply) {
  return { reason, status: REASONS[reason].status, message };
}
