import { TIER_MAX } from '../foreign-members.ts';
import type { ImportReport } from './import-report.ts';
import type { ReadDeployment } from './read-deployments.ts';

/**
 * Converts the orders of the deployments of each name to tiers. The lowest order is the first tier. Deployments without
 * an order come after those with one.
 *
 * Source: `_get_order_filtered_deployments` in `litellm/utils.py` of BerriAI/litellm, read on 2026-11-27.
 */
export function inTiers(
  deployments: readonly ReadDeployment[],
  report: ImportReport,
): ReadDeployment[] {
  const orders = new Map<string, Set<number>>();
  for (const { title, member } of deployments) {
    const order = member?.tier;
    if (order !== undefined) orders.set(title, (orders.get(title) ?? new Set()).add(order));
  }
  return deployments.map((deployment) => {
    const own = [...(orders.get(deployment.title) ?? [])].toSorted((a, b) => a - b);
    if (own.length === 0) return deployment;
    const { at, member } = deployment;
    const tier = (member?.tier === undefined ? own.length : own.indexOf(member.tier)) + 1;
    if (tier > TIER_MAX) {
      const message = `has no order of its own after tier ${TIER_MAX}, the maximum`;
      report.omitField(`${at}.litellm_params.order`, 'order', message);
    }
    return { ...deployment, member: { ...member, tier: Math.min(TIER_MAX, tier) } };
  });
}
