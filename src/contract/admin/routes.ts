import { ATTENTION_ROUTES } from './attention-routes.ts';
import { BUDGET_ROUTES } from './budget-routes.ts';
import { BULK_ROUTES } from './bulk-routes.ts';
import type { RouteName } from './addresses.ts';
import { ABOUT_ROUTES, CONFIG_ROUTES, UPSTREAM_ROUTES } from './config-routes.ts';
import { COST_ROUTES } from './cost-routes.ts';
import { GROUP_ROUTES } from './group-routes.ts';
import { ACCESS_ROUTES, KEY_ROUTES } from './key-routes.ts';
import { OBSERVATION_ROUTES } from './observation-routes.ts';
import { PREVIEW_ROUTES } from './preview-routes.ts';
import { REFUSAL_ROUTES } from './refusal-routes.ts';
import { TEAM_ROUTES } from './team-routes.ts';
import { WEBHOOK_ROUTES } from './webhook-routes.ts';
import type { AdminRoute } from './route.ts';
import { VERSION_ROUTES } from './version-routes.ts';

/** All routes of the admin API by operation id. Handlers, document and client derive from them. */
export const ADMIN_ROUTES = {
  ...GROUP_ROUTES,
  ...BUDGET_ROUTES,
  ...BULK_ROUTES,
  ...ATTENTION_ROUTES,
  ...OBSERVATION_ROUTES,
  ...REFUSAL_ROUTES,
  ...PREVIEW_ROUTES,
  ...UPSTREAM_ROUTES,
  ...KEY_ROUTES,
  ...TEAM_ROUTES,
  ...COST_ROUTES,
  ...CONFIG_ROUTES,
  ...WEBHOOK_ROUTES,
  ...VERSION_ROUTES,
  ...ACCESS_ROUTES,
  ...ABOUT_ROUTES,
} satisfies Readonly<Record<RouteName, AdminRoute>>;

export type AdminRoutes = typeof ADMIN_ROUTES;
