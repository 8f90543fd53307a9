/** The pages about where calls come from and go to: one file, which compresses better than three. */
export { SetupPage } from './setup/setup-page.tsx';
export { TesterPage } from './tester/tester-page.tsx';
export { UpstreamsPage } from './upstreams/upstreams-page.tsx';
