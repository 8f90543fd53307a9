/** Pages about clients and upstreams. One file compresses better than three. */
export { SetupPage } from './setup/setup-page.tsx';
export { TesterPage } from './tester/tester-page.tsx';
export { UpstreamsPage } from './upstreams/upstreams-page.tsx';
