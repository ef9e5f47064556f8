/// The labels of a run from the variables of the usual CI systems.
package enum CILabels {
  /// For each label the variables of GitHub Actions, GitLab, Jenkins, Buildkite, CircleCI, Azure Pipelines, Bitbucket and Travis CI.
  private static let variables: [(label: String, names: [String])] = [
    (
      "commit",
      [
        "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "BUILD_SOURCEVERSION",
        "BITBUCKET_COMMIT", "TRAVIS_COMMIT",
      ]
    ),
    (
      "branch",
      [
        "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH",
        "BUILD_SOURCEBRANCHNAME", "BITBUCKET_BRANCH", "TRAVIS_BRANCH",
      ]
    ),
    (
      "build",
      [
        "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_NUMBER", "BUILDKITE_BUILD_NUMBER", "CIRCLE_BUILD_NUM",
        "BUILD_BUILDID",
        "BITBUCKET_BUILD_NUMBER", "TRAVIS_BUILD_NUMBER",
      ]
    ),
    ("job", ["GITHUB_JOB", "CI_JOB_NAME", "JOB_NAME", "BUILDKITE_LABEL", "CIRCLE_JOB", "AGENT_JOBNAME"]),
  ]

  /// Returns the labels.
  package static func labels(_ environment: [String: String]) -> [String: String] {
    variables.reduce(into: [:]) { labels, variable in
      labels[variable.label] = variable.names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
  }
}
