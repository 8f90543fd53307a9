/** Pages that use the schemas of the configuration. They form one file, because they share most of its code. */
export { AuditPage } from './audit/audit-page.tsx';
export { ConfigPage } from './config/config-page.tsx';
export { EditPage } from './edit/edit-page.tsx';
export { CallsPage } from './calls/calls-page.tsx';
export { SeveralPage } from './several/several-page.tsx';
export { KeysPage } from './keys/keys-page.tsx';
export { UPSTREAM_HELP } from '../model/upstream-help.ts';
