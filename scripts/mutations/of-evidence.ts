import type { Mutation } from './mutation.ts';

/** Whether a refusal for concurrency is believed. */
export const EVIDENCE: readonly Mutation[] = [
  {
    name: 'believes every refusal whatever was served',
    file: 'evidence.ts',
    find: 'const slots = Math.max(othersInUse, served);',
    replace: 'const slots = othersInUse + 0 * served;',
  },
  {
    name: 'believes no second refusal',
    file: 'evidence.ts',
    find: '    first !== null &&\n    now - first.at',
    replace: '    first !== null &&\n    now > now + first.at &&\n    now - first.at',
  },
  {
    name: 'lets one call confirm its own refusal at once',
    file: 'evidence.ts',
    find: 'first.ticketId !== ticketId || first.slots <= othersInUse',
    replace: 'first.slots >= 0',
  },
  {
    name: 'lets one call never confirm its own refusal',
    file: 'evidence.ts',
    find: 'first.ticketId !== ticketId || first.slots <= othersInUse',
    replace: 'first.ticketId !== ticketId',
  },
  {
    name: 'lets a refusal of long ago confirm another',
    file: 'evidence.ts',
    find: '    now - first.at <= CONFIRMED_WITHIN_MS &&\n',
    replace: '',
  },
  {
    name: 'believes what was served for ever',
    file: 'evidence.ts',
    find: 'isFresh ? evidence.servedSlots : 0',
    replace: 'isFresh || first === null ? evidence.servedSlots : 0',
  },
  {
    name: 'remembers more served than a confirmed refusal leaves',
    file: 'evidence.ts',
    find: '  if (isConfirmed) evidence.servedSlots = Math.min(evidence.servedSlots, slots);\n',
    replace: '',
  },
  {
    name: 'takes calls for served beside which others were refused',
    file: 'evidence.ts',
    find: '  if (grantedAt <= evidence.refusedAt) return;\n',
    replace: '',
  },
  {
    name: 'takes chance for what the upstream takes',
    file: 'evidence.ts',
    find: 'const SEEN_MIN = 3;',
    replace: 'const SEEN_MIN = 1;',
  },
  {
    name: 'is not contradicted by what is served',
    file: 'evidence.ts',
    find: '  if (slotsAtGrant > refusal.slots) evidence.refusal = null;\n',
    replace: '',
  },
  {
    name: 'forgets what was served since the first refusal',
    file: 'evidence.ts',
    find: '  refusal.servedSlots = Math.max(refusal.servedSlots, slotsAtGrant);\n',
    replace: '',
  },
  {
    name: 'holds a call back for ever',
    file: 'evidence.ts',
    find: '  refusal.isHeldBack = false;\n',
    replace: '',
  },
  {
    name: 'sends a call again at once whose refusal it did not believe',
    file: 'order.ts',
    find: 'if (letsOthersTry(view.state.controls.ceiling.evidence, ticket.id, atUpstream(view.state))) {',
    replace: 'if (atUpstream(view.state) < 0) {',
  },
  {
    name: 'holds a call back beside nobody',
    file: 'evidence.ts',
    find: 'refusal.ticketId === ticketId && othersInUse > 0',
    replace: 'refusal.ticketId === ticketId && othersInUse >= 0',
  },
  {
    name: 'does not wake for a call that was held back',
    file: 'step.ts',
    find: 'settled, state.roomDueAt, tried));',
    replace: 'settled, state.roomDueAt, tried + Infinity));',
  },
  {
    name: 'learns from a refusal beside nobody',
    file: 'ceiling.ts',
    find: 'call.othersInUse === 0 ? Infinity : weighRefusal',
    replace: 'call.othersInUse === -1 ? Infinity : weighRefusal',
  },
  {
    name: 'ends a probe for a refusal that it does not believe',
    file: 'ceiling.ts',
    find: '  if (believed > call.othersInUse && accepted >= exactSlots(ceiling, settings)) return;\n',
    replace: '',
  },
  {
    name: 'does not learn from calls that ended well',
    file: 'upstream-signals.ts',
    find: '  noteAccepted(controls.ceiling.evidence, { grantedAt, slotsAtGrant }, now);\n',
    replace: '',
  },
  {
    name: 'does not ask what is served when a refusal is in doubt',
    file: 'upstream-signals.ts',
    find: 'pause.openMs > 0 || isInDoubt(ceiling.evidence, now)',
    replace: 'pause.openMs > 0',
  },
  {
    name: 'gives the permit to a probe that waits elsewhere',
    file: 'waiting.ts',
    find: 'if (!waitsElsewhere) noteGranted(state, lease, now);',
    replace: 'noteGranted(state, lease, now);',
  },
  {
    name: 'gives no permit to a probe that waited elsewhere',
    file: 'leases.ts',
    find: '  noteGranted(state, lease, now);\n',
    replace: '',
  },
  {
    name: 'lets many probes wait elsewhere',
    file: 'order.ts',
    find: "  if (slotsWaitingElsewhere > 0 && controls.breaker.phase !== 'closed') return true;\n",
    replace: '',
  },
];
