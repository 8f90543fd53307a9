import { ACCESS_ROUTES } from './resources/access.ts';
import { BUDGET_ROUTES } from './resources/budgets.ts';
import { BULK_ROUTES } from './resources/bulk.ts';
import { CALL_ROUTES } from './resources/calls.ts';
import { CONFIG_ROUTES } from './resources/config.ts';
import { COST_ROUTES } from './resources/costs.ts';
import { DECISION_ROUTES } from './resources/decisions.ts';
import { DOCS_ROUTES } from './resources/docs.ts';
import { EVENT_ROUTES } from './resources/events.ts';
import { SWITCH_ROUTES } from './resources/group-switches.ts';
import { GROUP_ROUTES } from './resources/groups.ts';
import { HISTORY_ROUTES } from './resources/history.ts';
import { KEY_ROUTES } from './resources/keys.ts';
import { LEASE_ROUTES } from './resources/leases.ts';
import { PREVIEW_ROUTES } from './resources/previews.ts';
import { REFUSAL_ROUTES } from './resources/refusals.ts';
import { STATUS_ROUTES } from './resources/status.ts';
import { TEAM_ROUTES } from './resources/teams.ts';
import { TESTER_ROUTES } from './resources/tester.ts';
import { UPSTREAM_ROUTES } from './resources/upstreams.ts';
import { VERSION_ROUTES } from './resources/versions.ts';
import { WEBHOOK_ROUTES } from './resources/webhook.ts';
import type { AdminRouteTable } from './route.ts';

/** All routes of the admin API by operation id, in the order of the OpenAPI document. */
export const ADMIN_ROUTES = {
  ...GROUP_ROUTES,
  ...SWITCH_ROUTES,
  ...LEASE_ROUTES,
  ...BUDGET_ROUTES,
  ...BULK_ROUTES,
  ...STATUS_ROUTES,
  ...HISTORY_ROUTES,
  ...EVENT_ROUTES,
  ...DECISION_ROUTES,
  ...CALL_ROUTES,
  ...REFUSAL_ROUTES,
  ...PREVIEW_ROUTES,
  ...KEY_ROUTES,
  ...TEAM_ROUTES,
  ...UPSTREAM_ROUTES,
  ...COST_ROUTES,
  ...CONFIG_ROUTES,
  ...TESTER_ROUTES,
  ...WEBHOOK_ROUTES,
  ...VERSION_ROUTES,
  ...ACCESS_ROUTES,
  ...DOCS_ROUTES,
} satisfies AdminRouteTable;

export type AdminRoutes = typeof ADMIN_ROUTES;
