interface RouteAddress {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE';
  /** Below `/admin/api`, as in `/groups/{name}`. */
  readonly path: string;
}

/**
 * Method and path of every route of the admin API, by operation id. They stand apart from the schemas, because
 * a client checks nothing by itself: a page in a browser need not load what it does not use.
 */
export const ROUTE_ADDRESSES = {
  listGroups: { method: 'GET', path: '/groups' },
  getGroup: { method: 'GET', path: '/groups/{name}' },
  putGroup: { method: 'PUT', path: '/groups/{name}' },
  patchGroup: { method: 'PATCH', path: '/groups/{name}' },
  deleteGroup: { method: 'DELETE', path: '/groups/{name}' },
  configureGroup: { method: 'POST', path: '/groups/{name}/configure' },
  pauseGroup: { method: 'POST', path: '/groups/{name}/pause' },
  drainGroup: { method: 'POST', path: '/groups/{name}/drain' },
  resumeGroup: { method: 'POST', path: '/groups/{name}/resume' },
  relearnGroup: { method: 'POST', path: '/groups/{name}/relearn' },
  takeOutMember: { method: 'POST', path: '/groups/{name}/members/{member}/take-out' },
  bringBackMember: { method: 'POST', path: '/groups/{name}/members/{member}/bring-back' },
  getGroupStatus: { method: 'GET', path: '/groups/{name}/status' },
  listLeases: { method: 'GET', path: '/groups/{name}/leases' },
  releaseLease: { method: 'DELETE', path: '/groups/{name}/leases/{id}' },
  listWaiters: { method: 'GET', path: '/groups/{name}/waiters' },
  cancelWaiter: { method: 'DELETE', path: '/groups/{name}/waiters/{ticket}' },
  promoteWaiter: { method: 'POST', path: '/groups/{name}/waiters/{ticket}/promote' },
  getHistory: { method: 'GET', path: '/groups/{name}/history' },
  streamEvents: { method: 'GET', path: '/events' },
  listDecisions: { method: 'GET', path: '/groups/{name}/decisions' },
  listWarnings: { method: 'GET', path: '/groups/{name}/warnings' },
  previewConfig: { method: 'POST', path: '/config/preview' },
  previewGroup: { method: 'POST', path: '/groups/{name}/preview' },
  listUpstreams: { method: 'GET', path: '/upstreams' },
  getUpstream: { method: 'GET', path: '/upstreams/{id}' },
  putUpstream: { method: 'PUT', path: '/upstreams/{id}' },
  patchUpstream: { method: 'PATCH', path: '/upstreams/{id}' },
  deleteUpstream: { method: 'DELETE', path: '/upstreams/{id}' },
  listKeys: { method: 'GET', path: '/keys' },
  createKey: { method: 'POST', path: '/keys' },
  getKey: { method: 'GET', path: '/keys/{id}' },
  patchKey: { method: 'PATCH', path: '/keys/{id}' },
  deleteKey: { method: 'DELETE', path: '/keys/{id}' },
  rotateKey: { method: 'POST', path: '/keys/{id}/rotate' },
  revokeKey: { method: 'POST', path: '/keys/{id}/revoke' },
  listTeams: { method: 'GET', path: '/teams' },
  getTeam: { method: 'GET', path: '/teams/{id}' },
  putTeam: { method: 'PUT', path: '/teams/{id}' },
  patchTeam: { method: 'PATCH', path: '/teams/{id}' },
  deleteTeam: { method: 'DELETE', path: '/teams/{id}' },
  getCosts: { method: 'GET', path: '/costs' },
  getConfig: { method: 'GET', path: '/config' },
  putConfig: { method: 'PUT', path: '/config' },
  listVersions: { method: 'GET', path: '/config/versions' },
  rollBack: { method: 'POST', path: '/config/rollback' },
  fingerprint: { method: 'POST', path: '/fingerprint' },
  listAudit: { method: 'GET', path: '/audit' },
  testCall: { method: 'POST', path: '/tester' },
  getStatus: { method: 'GET', path: '/status' },
  getIsolate: { method: 'GET', path: '/isolate' },
  getSession: { method: 'GET', path: '/session' },
  signIn: { method: 'POST', path: '/session' },
  signOut: { method: 'DELETE', path: '/session' },
  listAdminKeys: { method: 'GET', path: '/admin-keys' },
  createAdminKey: { method: 'POST', path: '/admin-keys' },
  deleteAdminKey: { method: 'DELETE', path: '/admin-keys/{id}' },
  getOpenApi: { method: 'GET', path: '/openapi.json' },
  getDocs: { method: 'GET', path: '/docs' },
  getDocsStyle: { method: 'GET', path: '/docs.css' },
} as const satisfies Readonly<Record<string, RouteAddress>>;

/** Operation id of a route. */
export type RouteName = keyof typeof ROUTE_ADDRESSES;
