import testcontainers from './testcontainers.js';

export const { ApnsMockContainer, StartedApnsMockContainer } = testcontainers;
