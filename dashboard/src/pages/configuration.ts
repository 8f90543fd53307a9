/** The pages that check by the schemas of the configuration: one file, since they share most of it. */
export { AuditPage } from './audit/audit-page.tsx';
export { ConfigPage } from './config/config-page.tsx';
export { EditPage } from './edit/edit-page.tsx';
export { CallsPage } from './calls/calls-page.tsx';
export { SeveralPage } from './several/several-page.tsx';
export { KeysPage } from './keys/keys-page.tsx';
export { UPSTREAM_HELP } from '../model/upstream-help.ts';
