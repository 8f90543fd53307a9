import type { Mutation } from './mutation.ts';

/** Whose turn it is: ages, caps, reservations, wide calls. */
export const ORDER: readonly Mutation[] = [
  {
    name: 'lets an old run delay others without bound',
    file: 'order.ts',
    find: 'ageCreditMs === null ? -Infinity : ticket.enqueuedAt - ageCreditMs',
    replace: '-Infinity',
  },
  {
    name: 'knows no older runs',
    file: 'order.ts',
    find: 'Math.max(agentStartedAt, earliest)',
    replace: 'ticket.enqueuedAt',
  },
  {
    name: 'bounds the credit where it has no bound',
    file: 'order.ts',
    find: 'ageCreditMs === null ? -Infinity : ticket.enqueuedAt - ageCreditMs',
    replace: 'ticket.enqueuedAt - (ageCreditMs ?? 0)',
  },
  {
    name: 'believes claims to come from the future',
    file: 'order.ts',
    find: 'Math.min(ticket.enqueuedAt, Math.max(agentStartedAt, earliest))',
    replace: 'Math.max(agentStartedAt, earliest)',
  },
  {
    name: 'believes claims to have waited for ever',
    file: 'new-waiter.ts',
    find: 'Math.min(Math.max(ticket.enqueuedAt, now - timeoutMs), now + 1)',
    replace: 'Math.min(ticket.enqueuedAt, now + 1)',
  },
  {
    name: 'believes a claim about an agent from a call without one',
    file: 'new-waiter.ts',
    find: 'holder.agent === null ? enqueuedAt : (ticket.agentStartedAt ?? agent.startedAt)',
    replace: 'ticket.agentStartedAt ?? agent.startedAt',
  },
  {
    name: 'remembers a run for ever',
    file: 'parts/accounts.ts',
    find: 'isIdle(agent) && now - agent.lastSeenAt > AGENT_FORGOTTEN_MS',
    replace: 'isIdle(agent) && now < 0',
  },
  {
    name: 'forgets a run that waits or holds',
    file: 'parts/accounts.ts',
    find: 'isIdle(agent) && now - agent.lastSeenAt > AGENT_FORGOTTEN_MS',
    replace: 'now - agent.lastSeenAt > AGENT_FORGOTTEN_MS',
  },
  {
    name: 'takes a run for over that only waited for long',
    file: 'waiting.ts',
    find: '  agent.lastSeenAt = now;\n',
    replace: '',
  },
  {
    name: 'does not let the first call after a reset make its run older',
    file: 'parts/accounts.ts',
    find: '    account.startedAt = seenAt;\n  }\n  account.lastSeenAt',
    replace: '  }\n  account.lastSeenAt',
  },
  {
    name: 'ignores what an operator put first',
    file: 'order.ts',
    find: '  if (a.isPromoted !== b.isPromoted) return a.isPromoted;\n',
    replace: '',
  },
  {
    name: 'looks for the promoted only where they would be first anyway',
    file: 'order.ts',
    find: '[...queue.promoted].filter((each) => mayGo(each, view))',
    replace: '[]',
  },
  {
    name: 'forgets a promotion with a change of lane',
    file: 'step.ts',
    find: 'event.toFront || waiter.isPromoted',
    replace: 'event.toFront',
  },
  {
    name: 'leaves a waiter in its lane',
    file: 'step.ts',
    find: 'event.lane ?? waiter.lane',
    replace: 'waiter.lane',
  },
  {
    name: 'lends what is reserved and never gives it back',
    file: 'order.ts',
    find: '  if (isReserved !== hasReserve(state, b)) return isReserved;\n',
    replace: '',
  },
  {
    name: 'looks for the reserved only where they would be first anyway',
    file: 'order.ts',
    find: 'Object.keys(settings.reserved).map',
    replace: 'Object.keys({}).map',
  },
  {
    name: 'reserves for a tenant without end',
    file: 'order.ts',
    find: 'ofTenant !== undefined && tenant.slots < ofTenant',
    replace: 'ofTenant !== undefined',
  },
  {
    name: 'reserves nothing for lanes',
    file: 'order.ts',
    find: 'ofLane !== undefined && slotsByLane[lane] < ofLane',
    replace: 'false',
  },
  {
    name: 'lets a tenant at its cap block the others',
    file: 'order.ts',
    find: '    if (cap === undefined) return best;\n    view.barred.add(cap);',
    replace: '    return cap === undefined ? best : undefined;',
  },
  {
    name: 'lets a tenant above its cap',
    file: 'order.ts',
    find: '  if (tenant.slots + slots > slotsMaxEach) return tenant;\n',
    replace: '',
  },
  {
    name: 'stops a tenant one below its cap',
    file: 'order.ts',
    find: 'account.slots >= slotsMax ||',
    replace: 'account.slots + 1 >= slotsMax ||',
  },
  {
    name: 'lets an agent above its cap',
    file: 'order.ts',
    find: 'if (agent.key !== NO_AGENT && agent.slots + slots > slotsMaxEachAgent) return agent;',
    replace: '',
  },
  {
    name: 'caps calls without an agent like one agent',
    file: 'order.ts',
    find: 'agent.key !== NO_AGENT && isFull',
    replace: 'isFull',
  },
  {
    name: 'lets narrow calls overtake a wide one under the cap of its tenant',
    file: 'order.ts',
    find: 'if (isFull(tenant, slotsMaxEach, view)) return false;',
    replace: 'if (tenant.slots + ticket.slots > slotsMaxEach) return false;',
  },
  {
    name: 'lets narrow calls overtake a wide one',
    file: 'waiting.ts',
    find: '    state.roomDueAt = at > now ? at : NEVER;\n',
    replace:
      '    if (at > now && roomAt(state, { ...waiter.need, slots: 1 }, now) <= now) { waiter.sliceEndsAt = null; continue; }\n    state.roomDueAt = at > now ? at : NEVER;\n',
  },
  {
    name: 'stops looking for the best too early',
    file: 'order.ts',
    find: 'oldest !== undefined && precedes(oldest, best, view)',
    replace: 'oldest === undefined',
  },
  {
    name: 'stops looking among agents that share too early',
    file: 'order.ts',
    find: 'if (view.state.settings.byAgent) return hadBy(line) <= hadBy(best);',
    replace: 'if (view.state.settings.byAgent) return hadBy(line) < hadBy(best);',
  },
];

/** Lanes and their shares. */
export const LANES: readonly Mutation[] = [
  {
    name: 'treats all lanes alike',
    file: 'order.ts',
    find: '  if (turns[a.lane] !== turns[b.lane]) return turns[a.lane] < turns[b.lane];\n',
    replace: '',
  },
  {
    name: 'gives lanes a share of what the lanes above get, and not of all grants',
    file: 'parts/lanes.ts',
    find: 'for (const lane of LANES) {',
    replace: 'for (const lane of LANES.slice(LANES.indexOf(granted) + 1)) {',
  },
  {
    name: 'lets lower lanes starve',
    file: 'parts/lanes.ts',
    find: 'laneCredit[lane] + settings.laneShares[lane]',
    replace: 'laneCredit[lane]',
  },
  {
    name: 'gives every lane the same share',
    file: 'parts/lanes.ts',
    find: 'laneCredit[lane] + settings.laneShares[lane]',
    replace: 'laneCredit[lane] + 0.1',
  },
  {
    name: 'does not let a lane pay for its turn',
    file: 'parts/lanes.ts',
    find: 'Math.max(0, laneCredit[granted] - 1)',
    replace: 'laneCredit[granted]',
  },
  {
    name: 'lets a lane save up turns without end',
    file: 'parts/lanes.ts',
    find: 'Math.min(CREDIT_MAX, laneCredit[lane] + settings.laneShares[lane])',
    replace: 'laneCredit[lane] + settings.laneShares[lane]',
  },
  {
    name: 'gives empty lanes turns',
    file: 'parts/lanes.ts',
    find: 'if (queue.lanes[lane].length === 0) continue;',
    replace: '',
  },
  {
    name: 'owes the same turn to whoever is higher',
    file: 'parts/lanes.ts',
    find: '(a, b) => laneCredit[b] - laneCredit[a]',
    replace: '() => 0',
  },
  {
    name: 'wants a turn and a bit before it owes one',
    file: 'parts/lanes.ts',
    find: 'const ONE_TURN = 1 - 1e-9;',
    replace: 'const ONE_TURN = 1;',
  },
];
